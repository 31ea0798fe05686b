/**
 * Every style in front of every driver of a server, over sockets: replies, requests and failures of each kind, whole and streamed. In a daily
 * run the styles take turns with replies and failures, so that each meets every one of them before some driver; the golden data has all of
 * them without sockets. What only one vendor has is tested in the driver's own folder.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Semaphore, Struct } from "effect"
import type { ServerProtocol } from "../../../src/contracts/drivers.ts"
import type { Sampling } from "../../../src/domain/Conversation.ts"
import type { Json } from "../../../src/domain/json.ts"
import { inTurn } from "../../support/effort.ts"
import { businessKey, type GatewayOptions, type RunningGateway, startGateway } from "../../support/gateway.ts"
import { makeMovedClock } from "../../support/movedClock.ts"
import { assertSame, type Clients } from "../../support/sameReply.ts"
import { styleClients, type StyleName, styleNames } from "../../support/styleClients.ts"
import { ask } from "../openai/callStyles.ts"
import type { MatrixDriver, MatrixServer, Told } from "./driver.ts"
import { failures, streamFaults } from "./failures.ts"
import { generate } from "./generate.ts"
import { messages } from "./messages.ts"
import { openai } from "./openai.ts"
import { sharedReplies } from "./replies.ts"
import { sharedRequests } from "./requests.ts"
import { responses } from "./responses.ts"

const byProtocol: { readonly [Name in ServerProtocol]: MatrixDriver } = { openai, responses, messages, generate }

const drivers = Object.values(byProtocol)

/** Each sampling parameter in chat completions, with a value that nothing else in a request has. */
const sampled: { readonly [Name in keyof Required<Sampling>]: readonly [field: string, value: Json] } = {
  temperature: ["temperature", 0.3713],
  topP: ["top_p", 0.9871],
  topK: ["top_k", 3717],
  maxTokens: ["max_tokens", 3719],
  maxCompletionTokens: ["max_completion_tokens", 3727],
  seed: ["seed", 37_313],
  presencePenalty: ["presence_penalty", 0.3733],
  frequencyPenalty: ["frequency_penalty", 0.3739],
  logitBias: ["logit_bias", { "37517": 1 }]
}

const paths: Readonly<Record<StyleName, string>> = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
  generate: "/v1beta/models/upstream-reasoner:generateContent"
}

/** Seconds of silence after which the gateway gives up, by a clock that stands still unless its time is let pass. */
const patience = 2

/** Rows of a table with their numbers. */
const numbered = <Row extends ReadonlyArray<unknown>>(rows: ReadonlyArray<Row>) =>
  rows.map((row, i) => [...row, i] as const)

describe.each(drivers.map((driver) => [driver.name, driver] as const))("in front of the driver %s", (_, driver) => {
  const place = drivers.indexOf(driver)
  let matrix: MatrixServer
  let patient: RunningGateway
  let impatient: RunningGateway
  let clients: Clients
  const clock = makeMovedClock({ still: true })

  const startWith = (timeouts: object, options: GatewayOptions = {}) =>
    startGateway({
      // So many keys that no fault leaves a request without one.
      accounts: Array.from({ length: 900 }, (_, i) => ({ token: `sk-${i}` })),
      captures: { enabled: false },
      upstream: {
        driver: driver.name,
        base_url: matrix.address,
        models: driver.models,
        errors: "own",
        timeouts: { queue: 0, ...timeouts }
      }
    }, options)

  beforeAll(async () => {
    matrix = await driver.start()
    patient = await startWith({})
    impatient = await startWith({ first_byte: patience, silence: patience }, { clock })
    clients = styleClients(patient.url)
  })
  afterAll(async () => {
    await patient.stop()
    await impatient.stop()
    await matrix.server.stop()
  })

  describe.each([["whole", false], ["streamed", true]] as const)("a reply that the server sends %s", (_, stream) => {
    it.each(sharedReplies.map((reply, i) => ({ ...reply, turn: place + i })))(
      "is the same in every style: $name",
      async ({ ask, ends, shown, turn, written }) => {
        matrix.server.answer(() => driver.write(written, ends, stream))
        const styles = inTurn(styleNames, turn)
        await assertSame(clients, { content: "Go", ...ask }, shown ?? { pieces: written, finish: ends }, styles)
      }
    )
  })

  describe("a reply of this server alone", () => {
    it.each(driver.replies ?? [])("is the same in every style: $name", async ({ answer, ask, styles, ...shown }) => {
      matrix.server.answer(() => answer)
      await assertSame(clients, { content: "Go", ...ask }, shown, styles)
    })
  })

  describe("a request arrives in the server's words:", () => {
    const rows = [
      ...Struct.keys(sharedRequests).map((name) => ({
        name,
        in: sharedRequests[name] as { readonly [Style in StyleName]?: object },
        arrives: driver.arrives[name],
        ignored: {} as { readonly [Style in StyleName]?: string }
      })),
      ...(driver.requests ?? []).map((row) => ({ ignored: {}, ...row }))
    ]
    const cases = rows.flatMap((row) =>
      styleNames.flatMap((style) => {
        const asked = row.in[style]
        return asked === undefined || style === driver.own ? [] : [{ ...row, style, asked }]
      })
    )

    it.each(cases)("$name ($style)", async ({ arrives, asked, ignored, style }) => {
      const needsCall = /"(?:required|tool)"|"type":"function","(?:function|name)"/.test(
        JSON.stringify("tool_choice" in asked ? asked.tool_choice : null)
      )
      matrix.server.answer(() =>
        driver.write(
          needsCall ? [{ _tag: "Call", name: "f", arguments: {} }] : [{ _tag: "Text", text: "Hello" }],
          needsCall ? "tool_calls" : "stop",
          true
        )
      )
      const response = await fetch(patient.url + paths[style], {
        method: "POST",
        headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
        body: JSON.stringify({
          ...(style === "generate" ? {} : { model: "upstream-reasoner" }),
          ...(style === "messages" ? { max_tokens: 64 } : {}),
          ...asked
        })
      })
      assert.strictEqual(response.status, 200, await response.text())
      const body: Readonly<Record<string, unknown>> = matrix.server.requests[0]?.body ?? {}
      const watched = Object.fromEntries(
        [...driver.watches, ...Object.keys(arrives)].flatMap((field) => field in body ? [[field, body[field]]] : [])
      )
      assert.deepStrictEqual(watched, arrives)
      assert.strictEqual(response.headers.get("x-gateway-ignored"), ignored[style] ?? null)
    })
  })

  it.each(Object.values(sampled))(
    "the parameter %s arrives, or is named among those without effect",
    async (field, value) => {
      matrix.server.answer(() => driver.write([{ _tag: "Text", text: "Hello" }], "stop", false))
      const response = await fetch(patient.url + paths.chat, {
        method: "POST",
        headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
        body: JSON.stringify({
          model: "upstream-chat",
          messages: [{ role: "user", content: "Hi" }],
          [field]: value
        })
      })
      assert.strictEqual(response.status, 200, await response.text())
      const arrives = JSON.stringify(matrix.server.requests[0]?.body).includes(JSON.stringify(value))
      assert.strictEqual(response.headers.get("x-gateway-ignored"), arrives ? null : field)
    }
  )

  it("a request has its key in one header, and the query of the address", async () => {
    const gateway = await startGateway({
      accounts: [{ token: "sk-of-this-account" }],
      upstream: { driver: driver.name, base_url: `${matrix.address}?tenant=a`, models: driver.models }
    })
    matrix.server.answer(() => driver.write([{ _tag: "Text", text: "Hello" }], "stop", false))
    const response = await fetch(gateway.url + paths.chat, {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "Hi" }] })
    })
    assert.strictEqual(response.status, 200, await response.text())
    await gateway.stop()
    const { headers = {}, path = "" } = matrix.server.requests[0] ?? {}
    const holders = Object.keys(headers).filter((name) => String(headers[name]).includes("sk-of-this-account"))
    assert.deepStrictEqual(holders, [driver.keyHeader])
    assert.include(path, "tenant=a")
  })

  /** Asks a server that falls silent: whenever it has, and what it said before is shown, the time of the gateway passes. */
  const askSilent = async (style: StyleName, stream: boolean, isShown: boolean) => {
    const { server } = matrix
    const before = server.requests.length
    const shown = Promise.withResolvers<void>()
    let over = false
    const asking = ask(impatient.url, style, stream, undefined, shown.resolve)
    const end = asking.then(() => {
      over = true
    })
    for (let count = 1; !over; count++) {
      await Promise.race([end, server.until((requests) => requests.length >= before + count)])
      if (stream && isShown) await Promise.race([end, shown.promise])
      if (!over) clock.move(patience * 1_000)
    }
    return asking
  }

  /**
   * Asks in every style, in a daily run in that of this `turn`, streamed and not. The server is asked `expected.asked` times for each stream.
   */
  const inEveryStyle = async (
    turn: number,
    expected: Told,
    askedForWhole: number,
    look: (stream: boolean, answered: Awaited<ReturnType<typeof ask>>, style: StyleName) => void,
    isShown = false,
    styles: ReadonlyArray<StyleName> = styleNames
  ) => {
    const { server } = matrix
    const isSilent = expected.message.source === "in time" && expected.code === "upstream_timeout"
    // Silences come one after another: the gateway has one clock.
    const turns = Semaphore.makeUnsafe(isSilent ? 1 : Infinity)
    // All of them end before the first fault is shown: no request is left to the next test.
    const asked = await Promise.allSettled(
      inTurn(styles, place + turn).flatMap((style) =>
        [false, true].map(async (stream) => {
          const answered = await Effect.runPromise(
            turns.withPermit(
              Effect.promise(() => isSilent ? askSilent(style, stream, isShown) : ask(patient.url, style, stream))
            )
          )
          const where = `${style}, ${stream ? "streamed" : "whole"}: ${JSON.stringify(answered)}`
          look(stream, answered, style)
          assert.match(answered.error?.message ?? "", expected.message, where)
          assert.isTrue(answered.ended, where)
          assert.strictEqual(answered.retryAfter !== null, answered.status !== 200 && expected.waits, where)
          // Styles name some errors by words of their own; the chat style's are the gateway's.
          if (style === "chat") {
            assert.strictEqual(answered.error?.code, expected.code)
          }
        })
      )
    )
    for (const outcome of asked) if (outcome.status === "rejected") throw outcome.reason
    assert.strictEqual(server.requests.length, asked.length / 2 * (expected.asked + askedForWhole))
    await server.until((requests) => requests.every(({ outcome }) => outcome !== "open"))
  }

  const refusals = [
    ...Struct.keys(failures).map((name) =>
      [name, driver.failures[name], driver.told?.[name] ?? failures[name]] as const
    ),
    ...driver.furtherFailures ?? []
  ]
  const faults = [
    ...Struct.keys(streamFaults).map((name) =>
      [name, driver.streamFaults[name], ...streamFaults[name], styleNames] as const
    ),
    ...(driver.furtherStreamFaults ?? []).map(([about, fault, before, after, styles = styleNames]) =>
      [about, fault, before, after, styles] as const
    )
  ]

  describe("where the configuration asks for the gateway's own errors, a failure is a plain one in every style, streamed and not:", () => {
    it.each(numbered(refusals))("%s", async (_, answer, expected, i) => {
      matrix.server.answer(() => answer)
      await inEveryStyle(i, expected, expected.asked, (_, { status, text }, style) => {
        // An unknown model is a 404 in the messages style.
        const shown = style === "messages" && expected.code === "model_not_found" ? 404 : expected.status
        assert.deepStrictEqual({ status, text }, { status: shown, text: "" }, style)
      })
    })

    it.each(numbered(faults))("%s before the first text", async (_, fault, before, _after, styles, i) => {
      matrix.server.answer(() => fault)
      await inEveryStyle(
        i,
        before,
        before.asked,
        (_, { status, text }, style) => {
          assert.deepStrictEqual({ status, text }, { status: before.status, text: "" }, style)
        },
        false,
        styles
      )
    })

    // Of a whole reply nothing was shown, so that it is tried again.
    it.each(numbered(faults))(
      "%s after the first text, where it ends a stream",
      async (_, fault, before, after, styles, i) => {
        matrix.server.answer(() => ({ ...fault, pieces: [driver.hello, ...fault.pieces ?? []] }))
        await inEveryStyle(
          i + 1,
          after,
          before.asked,
          (stream, { status, text }, style) => {
            assert.deepStrictEqual({ status, text }, {
              status: stream ? 200 : after.status,
              text: stream ? "Hello" : ""
            }, style)
          },
          true,
          styles
        )
      }
    )

    it("a fault of one attempt is not seen where the next one works", async () => {
      const passing = [
        ...refusals.map(([, answer, { asked }]) => ({ answer, asked })),
        ...faults.map(([, answer]) => ({ answer, asked: 3 }))
      ].filter(({ answer, asked }) => asked === 3 && answer.after !== "hang")
      for (const { answer } of passing) {
        matrix.server.answer((_, i) => i === 0 ? answer : driver.write([{ _tag: "Text", text: "Hello" }], "stop", true))
        const said = await ask(patient.url, "chat", true)
        assert.deepStrictEqual({ ...said, asked: matrix.server.requests.length }, {
          status: 200,
          text: "Hello",
          error: undefined,
          ended: true,
          retryAfter: null,
          shouldRetry: null,
          asked: 2
        })
        assert.notStrictEqual(matrix.server.requests[0]?.key, matrix.server.requests[1]?.key)
      }
    })

    it("a reply that is cut by length has no error", async () => {
      matrix.server.answer(() => driver.write([{ _tag: "Text", text: "Hello" }], "length", true))
      for (const style of styleNames) {
        for (const stream of [false, true]) {
          const { error, status, text } = await ask(patient.url, style, stream)
          assert.deepStrictEqual({ error, status, text }, { error: undefined, status: 200, text: "Hello" }, style)
        }
      }
    })
  })
})
