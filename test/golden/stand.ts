/**
 * A gateway without a socket whose server is scripted, at a time that stands still: what the server received and what the client got are
 * data of the test.
 */
import { Clock, Effect, type Scope, Stream } from "effect"
import { HttpClient, HttpClientError, type HttpClientRequest, HttpClientResponse } from "effect/http"
import type { ConfigInput } from "../../src/config/document.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { inProcess } from "../../src/testing/GatewayTest.ts"
import { businessKey } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import type { Answer, Piece } from "../support/openaiServer.ts"
import { untilHolds } from "../support/until.ts"
import { makeWallClock } from "../support/wallClock.ts"

/** A request as the server received it. */
export interface Received {
  readonly method: string
  /** With the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What a server does with a request; `index` counts the requests of one exchange. */
export type Script = (request: Received, index: number) => Answer

export interface Stand {
  readonly fetch: typeof globalThis.fetch
  /** As `fetch`, of a server that waits so many milliseconds: the headers go out before it goes on. */
  readonly fetchThrough: (wait: number, request: Request) => Promise<Response>
  /** Sets what the server does from now on, and forgets what it has received. */
  readonly answer: (script: Script) => void
  readonly received: ReadonlyArray<Received>
}

/** When time begins to stand still. */
export const started = Date.UTC(2026, 0, 2, 3, 4, 5)

/** Seconds of silence after which the gateway gives up. */
const patience = 2

/** So many accounts that no fault leaves a request without one. */
export const accounts = Array.from({ length: 900 }, (_, i) => ({ token: `sk-${i}` }))

const bodyOf = (request: HttpClientRequest.HttpClientRequest): Effect.Effect<string, unknown> => {
  const { body } = request
  switch (body._tag) {
    case "Uint8Array":
      return Effect.succeed(Buffer.from(body.body).toString())
    case "Raw":
      return Effect.succeed(String(body.body))
    case "Stream":
      return Effect.map(
        Stream.runFold(body.stream, () => "", (text, bytes) => text + Buffer.from(bytes).toString("latin1")),
        (text) => text
      )
    default:
      return Effect.succeed("")
  }
}

const reset = () => Object.assign(new Error("The connection was reset"), { code: "ECONNRESET" })

/** The pieces in their order, each when its reader asks for it, and then the end. `onSilence` is called where the server falls silent. */
const playing = ({ after, pieces = [] }: Answer, onSilence: () => void): ReadableStream<Uint8Array> => {
  const left: Array<Piece> = [...pieces]
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const piece = left.shift()
      if (piece instanceof Promise) await piece
      else if (typeof piece === "string") controller.enqueue(new TextEncoder().encode(piece))
      else if (piece !== undefined) controller.enqueue(piece)
      else if (after === "reset") controller.error(reset())
      else if (after === "hang") {
        onSilence()
        await new Promise(() => undefined)
      } else controller.close()
    }
  }, { highWaterMark: 0 })
}

/** Counts where a server falls silent, for one that waits for it. */
const makeSilences = () => {
  let unseen = 0
  let wake: (() => void) | undefined
  return {
    add: () => {
      unseen++
      wake?.()
    },
    /** Resolves at the next silence. */
    next: () =>
      new Promise<void>((resolve) => {
        const take = () => {
          if (unseen === 0) return
          unseen--
          wake = undefined
          resolve()
        }
        wake = take
        take()
      })
  }
}

/** Lets everything run that does not wait for time. */
const settled = async () => {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
}

const isNull = (status: number) => status === 204 || status === 304

/** Starts a gateway in the current scope. Where its server falls silent, the time passes until the gateway gives up. */
export const startStand = (
  { upstream, ...config }: RawConfig & { readonly upstream: RawConfig },
  server?: (silent: () => void) => HttpClient.HttpClient
): Effect.Effect<Stand, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const clock = makeMovedClock({ still: true, wall: started })
    const wall = makeWallClock(clock)
    let script: Script = () => ({})
    let received: Array<Received> = []
    const silences = makeSilences()

    const scripted = (request: HttpClientRequest.HttpClientRequest, seen: Received) =>
      Effect.suspend((): Effect.Effect<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError> => {
        const answer = script(seen, received.length - 1)
        if (answer.headless === true) {
          if (answer.after === "reset") {
            return Effect.fail(
              new HttpClientError.HttpClientError({
                reason: new HttpClientError.TransportError({ request, cause: reset() })
              })
            )
          }
          silences.add()
          return Effect.never
        }
        const { headers, status = 200 } = answer
        const response = new Response(isNull(status) ? null : playing(answer, silences.add), {
          status,
          headers: { "content-type": "text/event-stream", ...headers }
        })
        return Effect.succeed(HttpClientResponse.fromWeb(request, response))
      })

    const own = server?.(silences.add)
    const client = HttpClient.make((request, url) =>
      Effect.flatMap(Effect.orDie(bodyOf(request)), (body) => {
        const seen = { method: request.method, path: url.pathname + url.search, headers: request.headers, body }
        received.push(seen)
        return own === undefined ? scripted(request, seen) : own.execute(request)
      })
    )

    const options = {
      config: {
        keys: [businessKey],
        accounts,
        ...config,
        upstream: {
          base_url: "http://server.test/v1",
          timeouts: { queue: 0, first_byte: patience, silence: patience },
          ...upstream
        }
      } as ConfigInput
    }
    const gateway = yield* Effect.provideService(inProcess(options, client), Clock.Clock, wall)

    /** Lets the time pass whenever the server has fallen silent, until the exchange is over. */
    const passing = async (exchange: Promise<unknown>) => {
      let isOver = false
      const end = exchange.then(() => isOver = true, () => isOver = true)
      for (;;) {
        await Promise.race([end, silences.next()])
        if (isOver) return
        await settled()
        clock.move(patience * 1000)
      }
    }

    return {
      fetch: async (input, init) => {
        // The time passes until the whole body is there.
        const answering = gateway(input, init).then(async (response) =>
          new Response(response.body === null ? null : await response.text(), response)
        )
        await passing(answering)
        return answering
      },
      fetchThrough: async (wait, request) => {
        const answering = gateway(request)
        await untilHolds(() => clock.sleeping().includes(wait))
        clock.move(wait - 1)
        const response = await answering
        clock.move(1)
        return response
      },
      answer: (next) => {
        script = next
        received = []
        // Each exchange begins at the same time of day, however long those before it waited.
        wall.offset = started - clock.currentTimeMillisUnsafe()
      },
      get received() {
        return received
      }
    }
  })
