import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Layer, Pull, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Deadlines } from "../../../src/config/clock/Deadlines.ts"
import type { ConfigInvalid } from "../../../src/config/ConfigError.ts"
import { ConfigStore } from "../../../src/config/ConfigStore.ts"
import { invalidRequest } from "../../../src/domain/GatewayError.ts"
import { Exchange, Exchanges } from "../../../src/upstream/Exchange.ts"
import { layerHttpClient } from "../../../src/upstream/transports/httpClient.ts"
import { layerUndici } from "../../../src/upstream/transports/undici.ts"

const limits = { firstByte: 30_000, silence: 120_000 }

interface Carried {
  readonly exchange: Exchange
  readonly log: Array<"pause" | "resume" | "abort">
}

const carried = Effect.map(Deadlines, (deadlines): Carried => {
  const exchange = new Exchange({ phase: "completion", limits, isWhole: false, budget: undefined }, deadlines)
  const log: Carried["log"] = []
  exchange.attach({
    pause: () => log.push("pause"),
    resume: () => log.push("resume"),
    abort: () => log.push("abort")
  })
  return { exchange, log }
})

/** The next bytes, or the end. */
const next = ({ bytes }: Exchange) =>
  Effect.scoped(Effect.flatMap(Stream.toPull(bytes), (pull) => Effect.map(pull, ([chunk]) => chunk)))

/** Reads all; what it fails with stands behind the text. */
const readAll = (exchange: Exchange): Effect.Effect<string> =>
  Effect.gen(function*() {
    let text = ""
    for (;;) {
      const exit = yield* Effect.exit(next(exchange))
      if (Exit.isSuccess(exit)) text += new TextDecoder().decode(exit.value)
      else if (Pull.isDoneCause(exit.cause)) return `${text}.`
      else {
        const failure = Cause.squash(exit.cause)
        return `${text}!${failure instanceof Error && "kind" in failure ? String(failure.kind) : "?"}`
      }
    }
  })

describe("an exchange", () => {
  it.effect("gives all that came, in order, and then how it ended, however reads and arrivals interleave", () =>
    Effect.gen(function*() {
      const arrival = fc.constantFrom("bytes", "bytes", "bytes", "turn")
      const end = fc.constantFrom("end", "break")
      for (const [arrivals, how] of fc.sample(fc.tuple(fc.array(arrival, { maxLength: 30 }), end), 200)) {
        const { exchange } = yield* carried
        const reading = yield* Effect.forkChild(Effect.andThen(exchange.head, readAll(exchange)))
        yield* Effect.yieldNow
        exchange.began(200, {})
        let sent = ""
        for (const [i, what] of arrivals.entries()) {
          if (what === "turn") yield* Effect.promise(() => new Promise(setImmediate))
          else {
            sent += `${i},`
            exchange.received(Buffer.from(`${i},`))
          }
        }
        if (how === "end") exchange.ended()
        else exchange.broke(new Error("reset"))
        // What comes afterwards is not heard.
        exchange.received(Buffer.from("late"))
        assert.strictEqual(yield* Fiber.join(reading), how === "end" ? `${sent}.` : `${sent}!transport`)
      }
      assert.strictEqual((yield* Deadlines).size(), 0)
    }).pipe(Effect.provide(Deadlines.layer)))

  it.effect("pauses its carrier at a bound and goes on when the reader has taken it", () =>
    Effect.gen(function*() {
      const { exchange, log } = yield* carried
      exchange.began(200, {})
      for (let i = 0; i < 9; i++) exchange.received(Buffer.alloc(32 * 1024))
      assert.deepStrictEqual(log, ["pause"])
      assert.strictEqual((yield* next(exchange)).length, 9 * 32 * 1024)
      assert.deepStrictEqual(log, ["pause", "resume"])
      exchange.leave()
      exchange.leave()
      assert.deepStrictEqual(log, ["pause", "resume", "abort"])
    }).pipe(Effect.provide(Deadlines.layer)))

  it.effect("is left alone once it is complete", () =>
    Effect.gen(function*() {
      const { exchange, log } = yield* carried
      exchange.began(200, {})
      exchange.ended()
      exchange.leave()
      assert.deepStrictEqual(log, [])
    }).pipe(Effect.provide(Deadlines.layer)))

  it.effect("times out without a head, without a first byte and in silence, but not without a reader", () =>
    Effect.gen(function*() {
      const without = yield* carried
      const head = yield* Effect.forkChild(Effect.flip(without.exchange.head))
      yield* TestClock.adjust(30_000)
      const failure = yield* Fiber.join(head)
      assert.deepStrictEqual([failure.phase, failure.kind], ["completion", "timeout"])
      assert.deepStrictEqual(without.log, ["abort"])

      const headOnly = yield* carried
      headOnly.exchange.began(200, {})
      yield* headOnly.exchange.head
      yield* TestClock.adjust("10 minutes")
      const firstByte = yield* Effect.forkChild(readAll(headOnly.exchange))
      yield* TestClock.adjust(30_000)
      assert.strictEqual(yield* Fiber.join(firstByte), "!timeout")

      const silent = yield* carried
      silent.exchange.began(200, {})
      silent.exchange.received(Buffer.from("x"))
      yield* next(silent.exchange)
      yield* TestClock.adjust("10 minutes")
      const silence = yield* Effect.forkChild(readAll(silent.exchange))
      yield* TestClock.adjust(119_000)
      silent.exchange.received(Buffer.from("y"))
      yield* Effect.promise(() => new Promise(setImmediate))
      yield* TestClock.adjust(119_000)
      assert.isUndefined(silence.pollUnsafe())
      yield* TestClock.adjust(1_100)
      assert.strictEqual(yield* Fiber.join(silence), "y!timeout")
    }).pipe(Effect.provide(Deadlines.layer)))

  it.effect("waits for the head from the last bytes of its body on", () =>
    Effect.gen(function*() {
      const { exchange } = yield* carried
      const head = yield* Effect.forkChild(Effect.flip(exchange.head))
      for (let i = 0; i < 3; i++) {
        yield* TestClock.adjust(29_000)
        exchange.sending()
      }
      yield* TestClock.adjust(29_000)
      assert.isUndefined(head.pollUnsafe())
      yield* TestClock.adjust(1_100)
      assert.strictEqual((yield* Fiber.join(head)).kind, "timeout")
    }).pipe(Effect.provide(Deadlines.layer)))

  it.effect("ends after a short silence once it is settled", () =>
    Effect.gen(function*() {
      const { exchange, log } = yield* carried
      exchange.began(200, {})
      const reading = yield* Effect.forkChild(readAll(exchange))
      yield* Effect.yieldNow
      exchange.expectEnd(2_000)
      yield* TestClock.adjust(2_100)
      assert.strictEqual(yield* Fiber.join(reading), ".")
      assert.deepStrictEqual(log, ["abort"])
    }).pipe(Effect.provide(Deadlines.layer)))

  it.effect("ends where it breaks once it is settled", () =>
    Effect.gen(function*() {
      for (const isSettled of [true, false]) {
        const { exchange } = yield* carried
        exchange.began(200, {})
        exchange.expectEnd(2_000)
        if (!isSettled) exchange.expectEnd(undefined)
        exchange.received(Buffer.from("x"))
        exchange.broke(new Error("reset"))
        assert.strictEqual(yield* readAll(exchange), isSettled ? "x." : "x!transport")
      }
    }).pipe(Effect.provide(Deadlines.layer)))

  it.effect("waits as long as ever once that is taken back", () =>
    Effect.gen(function*() {
      for (const isRead of [true, false]) {
        const { exchange } = yield* carried
        exchange.began(200, {})
        exchange.received(Buffer.from("x"))
        yield* next(exchange)
        exchange.expectEnd(2_000)
        if (!isRead) exchange.expectEnd(undefined)
        const reading = yield* Effect.forkChild(readAll(exchange))
        yield* Effect.yieldNow
        if (isRead) exchange.expectEnd(undefined)
        yield* TestClock.adjust(119_000)
        assert.isUndefined(reading.pollUnsafe())
        yield* TestClock.adjust(1_100)
        assert.strictEqual(yield* Fiber.join(reading), "!timeout")
      }
    }).pipe(Effect.provide(Deadlines.layer)))
})

/** A server whose replies the test plays. */
const serve = (play: (path: string, response: ServerResponse, request: IncomingMessage) => void) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly origin: string; readonly close: () => void }>((resume) => {
      const server = createServer((request, response) => play(request.url!, response, request))
      server.listen(0, "127.0.0.1", () =>
        resume(Effect.succeed({
          origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
          close: () => server.close().closeAllConnections()
        })))
    }),
    ({ close }) => Effect.sync(close)
  )

const Memory = ConfigStore.layerJson()

const carriers: { readonly [name: string]: Layer.Layer<Exchanges | Deadlines, ConfigInvalid> } = {
  "undici's dispatcher": layerUndici.pipe(Layer.provideMerge(Deadlines.layer), Layer.provide(Memory)),
  "any HttpClient": layerHttpClient.pipe(
    Layer.provideMerge(Deadlines.layer),
    Layer.provide(Memory),
    Layer.provide(NodeHttpClient.layerUndici)
  )
}

describe.each(Object.entries(carriers))("exchanges on %s", (_, layer) => {
  const start = (origin: string, path: string) =>
    Effect.flatMap(
      Exchanges,
      (exchanges) =>
        exchanges.start(
          {
            method: "POST",
            origin,
            path,
            headers: { "x-test": "1" },
            body: "{}",
            connection: undefined,
            sign: undefined
          },
          {
            phase: "session",
            limits,
            isWhole: false,
            budget: undefined
          }
        )
    )

  it.live("carry status, headers and bytes, end, break off, and are refused", () =>
    Effect.gen(function*() {
      const { origin } = yield* serve((path, response) => {
        response.writeHead(path === "/refused" ? 429 : 200, { "retry-after": "7" })
        response.write("one ")
        if (path === "/broken") return void setImmediate(() => response.socket!.resetAndDestroy())
        response.end("two")
      })
      const whole = yield* start(origin, "/whole")
      yield* whole.head
      assert.strictEqual(whole.status, 200)
      assert.strictEqual(whole.headers["retry-after"], "7")
      assert.strictEqual(yield* readAll(whole), "one two.")
      const refused = yield* start(origin, "/refused")
      yield* refused.head
      assert.strictEqual(refused.status, 429)
      refused.leave()
      const broken = yield* start(origin, "/broken")
      yield* broken.head
      assert.match(yield* readAll(broken), /^(?:one )?!transport$/)
    }).pipe(Effect.scoped, Effect.provide(layer)))

  const send = (origin: string, body: AsyncIterable<Uint8Array>, headers: { readonly [name: string]: string }) =>
    Effect.flatMap(
      Exchanges,
      (exchanges) =>
        exchanges.start({
          method: "POST",
          origin,
          path: "/",
          headers,
          body: Stream.fromAsyncIterable(body, (cause) => invalidRequest(String(cause))),
          connection: undefined,
          sign: undefined
        }, { phase: "session", limits, isWhole: false, budget: undefined })
    )

  it.live.each([{ "content-length": "8" }, {}])(
    "send a body while it arrives, with the headers %j",
    (headers) =>
      Effect.gen(function*() {
        const arrived = Promise.withResolvers<void>()
        const { origin } = yield* serve((_, response, request) => {
          let text = ""
          request.on("data", (bytes: Buffer) => {
            text += bytes.toString()
            arrived.resolve()
          })
          request.on("end", () => response.end(`${text} ${request.headers["content-length"] ?? "?"}`))
        })
        const body = async function*() {
          yield Buffer.from("one ")
          await arrived.promise
          yield Buffer.from("two.")
        }
        const exchange = yield* send(origin, body(), { "content-type": "text/plain", ...headers })
        yield* exchange.head
        assert.strictEqual(yield* readAll(exchange), `one two. ${headers["content-length"] ?? "?"}.`)
      }).pipe(Effect.scoped, Effect.provide(layer))
  )

  it.live("fail when their body does, and end it when they are left", () =>
    Effect.gen(function*() {
      const { origin } = yield* serve((_, response, request) => {
        request.on("error", () => {})
        request.once("data", () => response.flushHeaders())
      })
      const failing = async function*() {
        yield Buffer.from("one")
        await Promise.resolve()
        throw new Error("the client has left")
      }
      const failed = yield* send(origin, failing(), { "content-length": "9" })
      assert.match(yield* Effect.andThen(Effect.ignore(failed.head), readAll(failed)), /!transport$/)
      const ended = Promise.withResolvers<void>()
      const endless = async function*() {
        try {
          for (;;) yield Buffer.alloc(64 * 1024)
        } finally {
          ended.resolve()
        }
      }
      const left = yield* send(origin, endless(), {})
      yield* left.head
      left.leave()
      yield* Effect.promise(() => ended.promise)
    }).pipe(Effect.scoped, Effect.provide(layer)))

  it.live("fail at a port without a server", () =>
    Effect.gen(function*() {
      const { close, origin } = yield* serve(() => undefined)
      close()
      const exchange = yield* start(origin, "/")
      const failure = yield* Effect.flip(exchange.head)
      assert.deepStrictEqual([failure.phase, failure.kind], ["session", "transport"])
    }).pipe(Effect.scoped, Effect.provide(layer)))

  it.live("hold the server back without a reader, and stop it when they are left", () =>
    Effect.gen(function*() {
      const left = Promise.withResolvers<number>()
      const { origin } = yield* serve((_, response) => {
        let sent = 0
        const block = Buffer.alloc(64 * 1024)
        const write = () => {
          while (sent < 512 * 1024 * 1024) {
            sent += block.length
            if (!response.write(block)) return
          }
        }
        response.on("drain", write)
        response.on("close", () => left.resolve(sent))
        write()
      })
      const exchange = yield* start(origin, "/")
      yield* exchange.head
      yield* next(exchange)
      exchange.leave()
      const sent = yield* Effect.promise(() => left.promise)
      assert.isBelow(sent, 512 * 1024 * 1024)
    }).pipe(Effect.scoped, Effect.provide(layer)))
})
