/** A request is held to its limits with what it takes from stored responses: a reference is short, whatever it stands for. */
import { assert, describe, it } from "@effect/vitest"
import { businessKey } from "../../support/gateway.ts"
import { base, useGateway } from "../support.ts"

const bodyBytes = 64 * 1024

const fetch = useGateway({ limits: { body_bytes: bodyBytes, messages: 100, parts: 200 } })

const create = async (body: object) => {
  const response = await fetch(`${base}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "gpt-5", ...body })
  })
  const { error, id } = await response.json() as { id: string; error: null | { code: string; param: string } }
  return { id, told: error === null ? 200 : [response.status, error.code, error.param] }
}

const message = (content: unknown) => ({ type: "message", id: "msg_own", role: "user", content })
const times = <A>(count: number, value: A) => Array.from({ length: count }, () => value)

describe("what is taken from stored responses", () => {
  it("counts as often as it is referred to", async () => {
    const { id } = await create({ input: [message("x".repeat(10_000))] })
    const refer = (count: number) =>
      create({ previous_response_id: id, input: times(count, { type: "item_reference", id: "msg_own" }) })
    assert.strictEqual((await refer(5)).told, 200)
    assert.deepStrictEqual((await refer(90)).told, [413, "request_too_large", "input[5].id"])
  })

  it("is no longer than a body when a response is continued", async () => {
    const input = [message("x".repeat(40_000))]
    const first = await create({ input })
    const second = await create({ input, previous_response_id: first.id })
    assert.strictEqual(second.told, 200)
    const third = await create({ input: "Hi", previous_response_id: second.id })
    assert.deepStrictEqual(third.told, [413, "request_too_large", "previous_response_id"])
  })

  it("has no more items than a body", async () => {
    const { id } = await create({ input: times(60, message("x")) })
    assert.strictEqual((await create({ input: times(39, "x"), previous_response_id: id })).told, 200)
    const refused = await create({ input: times(40, "x"), previous_response_id: id })
    assert.deepStrictEqual(refused.told, [400, "invalid_request", "input"])
  })

  it("has no more parts than a body", async () => {
    const { id } = await create({ input: [message(times(120, { type: "input_text", text: "x" }))] })
    const refer = (count: number) =>
      create({ previous_response_id: id, input: [message(times(count, { type: "input_text", text: "x" }))] })
    assert.strictEqual((await refer(70)).told, 200)
    assert.deepStrictEqual((await refer(80)).told, [400, "invalid_request", "input"])
  })
})
