/**
 * Compactions of a conversation: those that its server makes, and those of the gateway, which are made from a model's summary. Where a server
 * makes none, the gateway's takes its place in the same request.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Compactor, CompletedReply, CompletionOutput } from "../../../completion/Completion.ts"
import type { Asked, Replies } from "../../../completion/CompletionInput.ts"
import { startCooperatively } from "../../../config/clock/cooperative.ts"
import { LastingEncryption } from "../../../config/LastingEncryption.ts"
import type { Item } from "../../../contracts/responses/items.ts"
import type { Conversation } from "../../../domain/Conversation.ts"
import { estimateCooperatively } from "../../../domain/estimateConversation.ts"
import { type ErrorCode, GatewayError, gatewayError } from "../../../domain/GatewayError.ts"
import type { JsonFields } from "../../../domain/json.ts"
import { Finish, type ReplyEvent } from "../../../domain/ReplyEvent.ts"
import { isFields } from "../../../domain/replyExtras.ts"
import type { MadeTogether } from "../../shared/responder.ts"
import type { AskedCompaction } from "./asked.ts"
import { compactionItem } from "./compactedItems.ts"
import { summaryIn, summaryRequest } from "./prompt.ts"
import { openSeal, sealOf, unsealed } from "./seal.ts"

/** A request for a compaction. */
export interface CompactedRequest {
  /** The conversation as its server gets it, if there is a `compactor`. */
  readonly conversation: Conversation
  /** The model, as its caller named it. */
  readonly model: string
  /** The server that is asked first. */
  readonly compactor: Compactor | undefined
}

/** What both may make a compaction into. */
interface Made<A> {
  /** `undefined` if the server's reply has not exactly one compaction. */
  readonly ofServer: (reply: CompletedReply) => A | undefined
  readonly ofGateway: (summary: CompletedReply) => Effect.Effect<A, GatewayError>
}

/** How the replies of a request are made that asks for a compaction. */
export interface CompactedReplies extends MadeTogether {
  /** The seal of the gateway's compaction, once it is made. */
  readonly seal: () => string | undefined
}

/** Failures that say nothing of what the server can do, and that the gateway would meet too. */
const unrelated: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "rate_limit_exceeded",
  "upstream_rate_limited",
  "no_account_available",
  "store_unavailable",
  "upstream_timeout",
  "shutting_down",
  "content_filter"
])

/** A refusal of the field that asks for compactions. */
const refusesField = ({ code, message, param }: GatewayError): boolean =>
  code === "invalid_request" && /context.?management|compact/i.test(`${param ?? ""} ${message.slice(0, 2_000)}`)

const noCompaction = gatewayError("upstream_empty_output", "The server made no compaction")

const isCompaction = (value: unknown): boolean =>
  isFields(value as JsonFields) && (value as JsonFields)["type"] === "compaction"

/** The compactions that a server sent by now. */
const compactionsIn = (events: ReadonlyArray<ReplyEvent>): number =>
  events.filter((event) => event._tag === "ReplyExtra" && event.at === "item" && isCompaction(event.value["item"]))
    .length

/** The server's last description of a compaction that was asked for alone. */
const describedIn = ({ events }: CompletedReply): JsonFields | undefined => {
  const last = events.findLast((event) => event._tag === "ReplyExtra" && event.at === "response")
  const response = last?._tag === "ReplyExtra" ? last.value["response"] : undefined
  return compactionsIn(events) === 1 && isFields(response) ? response : undefined
}

/** A reply whose text is in a compaction: its usage alone. */
const withoutText = (reply: CompletedReply): CompletedReply => {
  const usage = reply.events.find(({ _tag }) => _tag === "UsageReported")
  return { ...reply, events: usage === undefined ? [Finish("stop")] : [usage, Finish("stop")] }
}

/** A whole reply as a stream. */
const asStream = (reply: CompletedReply): CompletionOutput => ({ ...reply, events: Stream.fromIterable(reply.events) })

/** The least threshold of the vendor, in tokens: below it a server may compact nothing. */
const leastThreshold = 1_000

/** Watches a reply in which a compaction is due once the prompt has so many tokens. */
class Watch {
  #compactions = 0
  #prompt = 0

  take(events: ReadonlyArray<ReplyEvent>): void {
    this.#compactions += compactionsIn(events)
    for (const event of events) if (event._tag === "UsageReported") this.#prompt = event.usage.promptTokens
  }

  /** The server has left a compaction out. */
  isMissing(least: number): boolean {
    return this.#compactions === 0 && this.#prompt >= Math.max(least, leastThreshold)
  }
}

/** What the server makes. If it refuses, what the gateway makes, which then makes all for a while. */
const orElse = <A>(
  { failed }: Compactor,
  server: Effect.Effect<A, GatewayError>,
  isRefusal: (error: GatewayError) => boolean,
  gateway: Effect.Effect<A, GatewayError>
): Effect.Effect<A, GatewayError> =>
  Effect.catchIf(server, isRefusal, () => Effect.tap(gateway, () => Effect.sync(failed)))

/** A compaction that is the whole reply. `own`: the conversation as the server gets it. */
const alone = <A>(
  { whole }: Replies,
  { compactor, conversation }: CompactedRequest,
  own: Conversation,
  { ofGateway, ofServer }: Made<A>
): Effect.Effect<A, GatewayError> => {
  const gateway = Effect.suspend(() => Effect.flatMap(whole(summaryRequest(conversation)), ofGateway))
  if (compactor === undefined) return gateway
  const server = Effect.flatMap(whole({ conversation: own, shorter: undefined }), (reply) => {
    const made = ofServer(reply)
    return made === undefined ? Effect.fail(noCompaction) : Effect.succeed(made)
  })
  return orElse(compactor, server, ({ code }) => !unrelated.has(code), gateway)
}

/** Makes the functions. Build them once, not per request. */
export const makeCompactions = Effect.gen(function*() {
  const { open, seal } = yield* LastingEncryption
  const clock = yield* Clock.Clock

  /** The seal of the summary that a model wrote. */
  const sealed = (reply: CompletedReply, model: string): Effect.Effect<string, GatewayError> =>
    Effect.suspend(() => {
      const summary = summaryIn(reply)
      if (summary instanceof GatewayError) return Effect.fail(summary)
      const { name, text } = unsealed({ at: Math.floor(clock.currentTimeMillisUnsafe() / 1000), model, summary })
      return Effect.map(seal(name, text), sealOf)
    })

  return {
    /** The summary in a seal; `undefined` if this gateway cannot read it. */
    readSummary: (seal: string): string | undefined => openSeal(open, seal)?.summary,

    /** A compaction by the endpoint for that: what the server describes, or what `made` makes of a seal and the reply with its summary. */
    byEndpoint: <A>(
      replies: Replies,
      request: CompactedRequest,
      ofServer: (described: JsonFields) => A,
      ofGateway: (seal: string, summary: CompletedReply) => Effect.Effect<A>
    ): Effect.Effect<A, GatewayError> => {
      const { conversation, model } = request
      const { vendorFields } = conversation
      // The words of the reply belong to the conversation: they call no tools.
      const own: Conversation = {
        ...conversation,
        tools: [],
        ...(vendorFields === undefined ? {} : { vendorFields: { ...vendorFields, compacts: true } })
      }
      return alone(replies, request, own, {
        ofGateway: (summary) => Effect.flatMap(sealed(summary, model), (seal) => ofGateway(seal, summary)),
        ofServer: (reply) => {
          const described = describedIn(reply)
          return described && ofServer(described)
        }
      })
    },

    /**
     * How the replies of a request are made that asks for a compaction. `without` makes its conversation for a server that is not asked for
     * it, and `goesOn` the one that has a compaction as its last item.
     */
    askedFor: (
      asked: Exclude<AskedCompaction, undefined>,
      request: CompactedRequest,
      without: Effect.Effect<Conversation, GatewayError>,
      goesOn: (last: Item) => Effect.Effect<Conversation, GatewayError>
    ): CompactedReplies => {
      const { compactor, conversation, model } = request
      let made: string | undefined
      const make = (reply: CompletedReply) =>
        Effect.tap(sealed(reply, model), (seal) =>
          Effect.sync(() => {
            made = seal
          }))
      const seal = () => made
      if (asked === "now") {
        const whole = (replies: Replies) =>
          alone(replies, request, conversation, {
            ofServer: (reply) => compactionsIn(reply.events) === 1 ? reply : undefined,
            ofGateway: (summary) => Effect.as(make(summary), withoutText(summary))
          })
        return { seal, whole, stream: (replies) => Effect.map(whole(replies), asStream) }
      }

      /** The reply after the gateway's compaction, if it is due. */
      const after = <A>({ whole }: Replies, reply: (asked: Asked) => Effect.Effect<A, GatewayError>) =>
        Effect.gen(function*() {
          const conversation = yield* without
          // A conversation that only its server can read gets no summary.
          const isDue = conversation.untranslated?.refused === undefined &&
            (yield* startCooperatively(estimateCooperatively(conversation))) >= asked
          if (!isDue) return yield* reply({ conversation, shorter: undefined })
          const seal = yield* make(yield* whole(summaryRequest(conversation)))
          return yield* reply({ conversation: yield* goesOn(compactionItem(seal)), shorter: undefined })
        })
      if (compactor === undefined) {
        return {
          seal,
          whole: (replies) => after(replies, replies.whole),
          stream: (replies) => after(replies, replies.stream)
        }
      }
      const watch = new Watch()
      const end = () => {
        if (watch.isMissing(asked)) compactor.failed()
      }
      return {
        seal,
        whole: (replies) => {
          const server = Effect.tap(
            replies.whole({ conversation, shorter: undefined }),
            ({ events }) =>
              Effect.sync(() => {
                watch.take(events)
                end()
              })
          )
          return orElse(compactor, server, refusesField, after(replies, replies.whole))
        },
        stream: (replies) => {
          const server = Effect.map(
            replies.stream({ conversation, shorter: undefined }),
            (output): CompletionOutput => ({
              ...output,
              events: Stream.onEnd(
                Stream.mapArray(output.events, (events) => {
                  watch.take(events)
                  return events
                }),
                Effect.sync(end)
              )
            })
          )
          return orElse(compactor, server, refusesField, after(replies, replies.stream))
        }
      }
    }
  }
})
