/**
 * Recorded replies that the embedded upstream plays again: `!replay NAME` as a line of the last user turn.
 *
 * The bytes pass through the driver of their protocol, so the reply is the same as when they were recorded.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Deadlines } from "../../config/clock/Deadlines.ts"
import { isServer, type UpstreamProtocol } from "../../contracts/drivers.ts"
import type { Conversation, Turn } from "../../domain/Conversation.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import { Exchange, type ExchangeLimits, type Exchanges } from "../Exchange.ts"
import type { ExchangeRequest } from "../ExchangeRequest.ts"
import { makers } from "../protocols.ts"
import type { Driver } from "../Upstream.ts"

/** One recorded response of the upstream. */
export interface RecordedRound {
  /** HTTP status; 0 without a response. */
  readonly status: number
  readonly contentType: string | undefined
  readonly bytes: Uint8Array
}

/** The responses to a completion and to each of its continues, in order. */
export interface Recording {
  readonly protocol: UpstreamProtocol
  readonly rounds: ReadonlyArray<RecordedRound>
}

/** Finds a recording by its name. By default there are no recordings. */
export const Recordings = Context.Reference<(name: string) => Effect.Effect<Recording | undefined>>(
  "model-gateway/upstream/Recordings",
  { defaultValue: () => () => Effect.undefined }
)

const textOf = (turn: Turn): string => turn.parts.map((part) => part._tag === "Text" ? part.text : "").join("\n")

/** A conversation whose `!replay` lines in the last user turn are plain text. */
const withoutReplay = (conversation: Conversation): Conversation => {
  const last = conversation.turns.findLastIndex((turn) => turn.role === "user")
  const turns = conversation.turns.map((turn, place) =>
    place !== last ? turn : {
      ...turn,
      parts: turn.parts.map((part) =>
        part._tag === "Text" ? { ...part, text: part.text.replaceAll(/^!replay\b/gm, " !replay") } : part
      )
    }
  )
  return { ...conversation, turns }
}

/** The name of the recording that the last user turn asks for. The section after a `!next` applies after a tool's reply. */
const wantedIn = ({ turns }: Conversation): string | undefined => {
  const last = turns.findLastIndex((turn) => turn.role === "user")
  if (last === -1) return undefined
  const toolReplies = turns.slice(last + 1).filter((turn) => turn.role === "tool").length
  const section = textOf(turns[last]!).split(/^!next[ \t]*$/m)[toolReplies]
  return section === undefined ? undefined : /^!replay[ \t]+(\S+)[ \t]*$/m.exec(section)?.[1]
}

const accepted = (data: unknown): Uint8Array =>
  Buffer.from(JSON.stringify({ code: 0, msg: "", data: { biz_code: 0, biz_msg: "", biz_data: data } }))

const exhausted = Buffer.from(
  JSON.stringify({ code: 50000, msg: "the recording has no other round", data: null })
)

/** Exchanges of one completion, answered with the recorded rounds in order. */
const replayExchanges = ({ protocol, rounds }: Recording, deadlines: Deadlines["Service"]): Exchanges["Service"] => {
  let next = 0
  const answer = (exchange: Exchange, { method, path }: ExchangeRequest): void => {
    const json = { "content-type": "application/json" }
    // A server is asked for a reply in one request; the session protocol has others before it.
    const isRound = isServer(protocol) ? method === "POST" : /\/(?:completion|continue)$/.test(path)
    const round = isRound ? rounds[next++] : undefined
    if (round?.status === 0) return exchange.broke(new Error("no reply was recorded"))
    if (round === undefined) {
      exchange.began(200, json)
      exchange.received(isRound ? exhausted : accepted({ id: crypto.randomUUID() }))
    } else {
      exchange.began(round.status, round.contentType === undefined ? {} : { "content-type": round.contentType })
      exchange.received(round.bytes)
    }
    exchange.ended()
  }
  return {
    secrets: [],
    start: (request, options) =>
      Effect.sync(() => {
        const exchange = new Exchange(options, deadlines)
        answer(exchange, request)
        return exchange
      })
  }
}

const replayDriver = (recording: Recording, limits: ExchangeLimits, deadlines: Deadlines["Service"]): Driver => {
  const exchanges = replayExchanges(recording, deadlines)
  const options = { baseUrl: "http://recording/v1", models: [], furtherModels: [], limits }
  return makers[recording.protocol](exchanges, options)
}

/**
 * Adds recordings to a driver: a conversation that names one is answered with it, all others by the driver. Recordings contain
 * other callers' data, so a caller with a token of their own gets none of them.
 */
export const withRecordings = <D extends Driver>(
  driver: D,
  limits: ExchangeLimits,
  deadlines: Deadlines["Service"]
): Effect.Effect<D> =>
  Effect.map(Recordings, (find) => ({
    ...driver,
    complete: Effect.fnUntraced(function*(request) {
      const name = wantedIn(request.conversation)
      if (name === undefined) return yield* driver.complete(request)
      if (request.direct === true) {
        return yield* driver.complete({ ...request, conversation: withoutReplay(request.conversation) })
      }
      const recording = yield* find(name)
      if (recording === undefined) {
        return yield* new UpstreamFailure({
          phase: "completion",
          kind: "refused",
          status: 400,
          message: "There is no recording of the name that !replay asks for"
        })
      }
      // Recorded session ids are unknown to the driver; do not report them for clean-up.
      const { events, id } = yield* replayDriver(recording, limits, deadlines).complete({
        ...request,
        onSession: undefined
      })
      return { id, sessionId: undefined, events }
    })
  }))
