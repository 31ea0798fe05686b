/**
 * 200 requests at once over three upstreams, while clients leave, the configuration changes and one server dies. Counted at the servers: no
 * limit is exceeded, nobody starves, and each reply is that of its own request.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { RawConfig } from "../../src/config/json.ts"
import { startGateway } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import { plainRequests } from "../support/plainRequests.ts"
import { untilHolds } from "../support/until.ts"
import {
  type Answer,
  type Behaviour,
  change,
  type Farm,
  post,
  queueOf,
  said,
  type SeenRequest,
  settled,
  startFarm,
  type Told,
  ways
} from "./support.ts"

let farm: Farm
beforeAll(async () => {
  farm = await startFarm()
})
afterAll(() => farm.stop())

const requests = 200

/** The most requests at once, by what counts them. */
const limits = { all: 15, one: 7, "one k1": 4, "one k2": 4, two: 6, dying: 5 }

const replyTo = (request: SeenRequest): string => `A reply to ${/ask-\d+\./.exec(request.bytes.toString())?.[0]}`

/** Answers what was asked, after a while that differs from request to request. */
const answers: Behaviour = (request, index) => {
  const answer = said(replyTo(request), request)
  return { ...answer, pieces: [settled(1 + (index * 7) % 13), ...answer.pieces ?? []] }
}

const broken: ReadonlyArray<Answer> = [
  { headless: true, after: "reset" },
  { status: 500, pieces: ["no"] },
  { status: 503, pieces: [] },
  { pieces: ["<html>"], headers: { "content-type": "text/html" } }
]

const config = (): RawConfig => ({
  upstreams: {
    dying: farm.upstream("dying", { account_max_inflight: limits.dying, account_max_queue: requests }),
    one: farm.upstream("one", {
      account_max_inflight: limits["one k1"],
      max_inflight: limits.one,
      account_max_queue: requests
    }),
    two: farm.upstream("two", { account_max_inflight: limits.two, account_max_queue: requests })
  },
  accounts: [{ upstream: "one", token: "k1" }, { upstream: "one", token: "k2" }],
  runtime: { global_max_inflight: limits.all },
  routes: {
    ordered: ["dying/m", "one/m", "two/m"],
    even: { targets: ["one/m", "dying/m", "two/m"], spread: "even" },
    patient: { targets: ["two/m", "one/m"], wait: 5 }
  }
})

const withUpstream = (name: string, fields: RawConfig) => (config: RawConfig): RawConfig => {
  const upstreams = config["upstreams"] as Record<string, RawConfig>
  return { ...config, upstreams: { ...upstreams, [name]: { ...upstreams[name], ...fields } } }
}

/** The routes without the upstream that dies, which loses the model. */
const withoutDying = (config: RawConfig): RawConfig => ({
  ...withUpstream("dying", { models: { other: "other" } })(config),
  routes: { ...config["routes"] as RawConfig, ordered: ["one/m", "two/m"], even: ["one/m", "two/m"] }
})

describe("200 concurrent requests", () => {
  it("stay within every limit, and each gets its own reply", async () => {
    const full = Promise.withResolvers<void>()
    // The first answers wait until every slot is in use.
    const begins: Behaviour = (request, index) => {
      const answer = answers(request, index)
      return { ...answer, pieces: [full.promise, ...answer.pieces ?? []] }
    }
    farm.answer("one", begins)
    farm.answer("two", begins)
    farm.answer("dying", (request, index) => index < 12 ? begins(request, index) : broken[index % broken.length]!)
    const clock = makeMovedClock({ still: true })
    const gateway = await startGateway(config(), { clock })
    const arrived = () => ["one", "two", "dying"].reduce((sum, name) => sum + farm.seen(name).length, 0)
    const leave = new Map<number, AbortController>()
    const names = ["ordered", "even", "patient"]
    const ask = (index: number): Promise<Told | "left"> => {
      const { stream, style } = ways[index % ways.length]!
      const model = names[index % names.length]!
      const { body, path } = plainRequests[style]
      const text = JSON.stringify({ ...body(stream), ...(style === "generate" ? {} : { model }) })
      const leaving = new AbortController()
      if (index % 5 === 3) leave.set(index, leaving)
      const asked = JSON.parse(text.replace(`"Hi"`, `"ask-${index}."`)) as object
      return post(gateway, path(stream).replace("upstream-chat", model), asked, { signal: leaving.signal }).catch(
        (error: unknown) => {
          if (leaving.signal.aborted) return "left"
          throw error
        }
      )
    }
    let over = 0
    const replies = Array.from({ length: requests }, (_, index) => ask(index).finally(() => over++))

    await untilHolds(() => farm.most.get("all") === limits.all)
    full.resolve()
    // Clients leave while they wait and while they are served.
    let left = 0
    for (const [index, leaving] of leave) {
      const at = arrived() + (index % 3)
      await untilHolds(() => arrived() >= at || over === requests)
      leaving.abort()
      left++
      if (left === 8) await change(gateway, withUpstream("one", { account_max_inflight: 2 }))
      if (left === 16) await change(gateway, withUpstream("two", { enabled: false }))
      if (left === 20) await change(gateway, withUpstream("two", { enabled: true }))
      if (left === 24) await change(gateway, withUpstream("one", { account_max_inflight: limits["one k1"] }))
      if (left === 28) await change(gateway, withoutDying)
      // The holds at first targets end.
      if (left === 32) clock.move(5_000)
    }
    const told = await Promise.all(replies)
    told.forEach((reply, index) => {
      if (reply === "left") return assert.isTrue(leave.has(index))
      assert.strictEqual(reply.status, 200, reply.body)
      assert.strictEqual(reply.text, `A reply to ask-${index}.`)
      assert.strictEqual(reply.model, names[index % names.length])
    })
    for (const [label, limit] of Object.entries(limits)) assert.isAtMost(farm.most.get(label) ?? 0, limit, label)
    await untilHolds(async () => (await queueOf(gateway)).in_use === 0)
    const { of, waiting } = await queueOf(gateway)
    assert.strictEqual(waiting, 0)
    for (const { in_use, waiting } of Object.values(of)) assert.deepStrictEqual([in_use, waiting], [0, 0])
    await gateway.stop()
  })
})
