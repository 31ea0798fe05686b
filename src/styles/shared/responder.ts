/**
 * Answers requests of every style: takes the caller once, finds the model by its name, and sends the conversation's reply whole or as a
 * stream.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { Caller } from "../../accounts/Accounts.ts"
import { type Compactor, type CompletedReply, Completion, type CompletionOutput } from "../../completion/Completion.ts"
import type { Replies } from "../../completion/CompletionInput.ts"
import { noteIgnored } from "../../completion/ignored.ts"
import type { Request } from "../../completion/Request.ts"
import type { RequestStats } from "../../completion/RequestStats.ts"
import { runCooperatively, startCooperatively } from "../../config/clock/cooperative.ts"
import { Deadlines } from "../../config/clock/Deadlines.ts"
import { CurrentLimits } from "../../config/limits.ts"
import type { ConversationContract, ReplyWriter } from "../../contracts/Contract.ts"
import { Faults } from "../../contracts/shared/Faults.ts"
import type { FrameRenderer } from "../../contracts/shared/FrameRenderer.ts"
import type { Conversation } from "../../domain/Conversation.ts"
import { estimateCooperatively } from "../../domain/estimateConversation.ts"
import { GatewayError } from "../../domain/GatewayError.ts"
import type { Limits } from "../../domain/limits.ts"
import type { Maker } from "../../domain/makers.ts"
import { type Reply, replyOf } from "../../domain/Reply.ts"
import type { NameFamily, Route } from "../../domain/routes.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import type { FamilyName } from "../../domain/VendorFields.ts"
import { type ReadRequest, withRest } from "../../http/jsonBody.ts"
import { type ReplyBody, respond } from "../../http/reply.ts"
import { CurrentCaller, CurrentRequest } from "../../http/RequestContext.ts"
import { CurrentServing } from "../../http/Serving.ts"
import { streamReply } from "../../http/streamReply.ts"
import { WorkLimit } from "../../http/WorkLimit.ts"

/** The running request. */
export interface RunningRequest {
  readonly caller: Caller
  readonly request: Request
  readonly stats: RequestStats
  readonly limits: Limits
  /** Unix seconds; the creation time in replies. */
  readonly created: number
}

/** How a style writes one reply. */
export interface ReplyFormat {
  /** The reply is sent as a stream. */
  readonly stream: boolean
  /** Makes the response of a reply that is not streamed. */
  readonly whole: (
    output: CompletedReply
  ) => Effect.Effect<HttpServerResponse.HttpServerResponse, GatewayError>
  /** Starts the renderer of a stream. */
  readonly frames: (output: CompletionOutput) => FrameRenderer
  /** Renders the frames of a failure between the headers and the first event. Without it the headers wait for the first event. */
  readonly failure: ((error: GatewayError) => string) | undefined
  /** True when the renderer keeps all text of the reply until its end. */
  readonly keepsText?: boolean
}

/** Opens a completion. */
export type Opening = Effect.Effect<CompletionOutput, GatewayError, Scope.Scope>

/** How a reply is made of several. */
export interface MadeTogether {
  readonly whole: (replies: Replies) => Effect.Effect<CompletedReply, GatewayError>
  readonly stream: (replies: Replies) => Effect.Effect<CompletionOutput, GatewayError>
}

/** Reads a request's conversation by its contract, with what only some drivers send. Notes the fields that have no effect. */
export const conversationBy = <Body>(
  { stats }: RunningRequest,
  readRequest: (body: Body, faults: Faults) => Cooperative<Result.Result<Conversation, GatewayError>>,
  sent: ReadRequest<Body>
): Effect.Effect<Conversation, GatewayError> => {
  const faults = new Faults(sent.bodyVendorFields)
  return Effect.flatMapEager(startCooperatively(readRequest(sent.body, faults)), (read) => {
    if (Result.isFailure(read)) return Effect.fail(read.failure)
    for (const path of faults.ignored) noteIgnored(stats, path)
    return Effect.succeed(withRest(read.success, sent))
  })
}

/** What is known of a reply before it is written. */
export type AboutReply = Pick<CompletionOutput, "id">

/** How a contract writes the replies of a request with an id. `about`: what they say of the request, by the id of the reply. */
export const formatBy = <Endpoint extends HttpApiEndpoint.Constraint, About>(
  { id, stream }: { readonly id: string; readonly stream: boolean },
  endpoint: Endpoint,
  { writeFailure, writeReply }: Pick<ConversationContract, "writeFailure"> & {
    readonly writeReply: (about: About) => Pick<ReplyWriter, "frames"> & {
      readonly whole: (reply: Reply) => ReplyBody<Endpoint>
    }
  },
  about: (output: AboutReply) => About
): ReplyFormat => ({
  stream,
  whole: (output) => Effect.succeed(respond(endpoint, writeReply(about(output)).whole(replyOf(output.events)))),
  frames: (output) => writeReply(about(output)).frames(),
  failure: (error) => writeFailure(error, id)
})

/** Makes the functions that answer requests. Build them once, not per request. */
export const makeResponder = Effect.gen(function*() {
  const completion = yield* Completion
  const deadlines = yield* Deadlines
  const { find, patience, readAgain } = yield* CurrentServing
  const { inTurn } = yield* WorkLimit

  return {
    currentRequest: Effect.withFiberSucceed<RunningRequest, CurrentCaller | CurrentRequest>((fiber) => {
      const request = Context.getUnsafe(fiber.context, CurrentRequest)
      return {
        caller: Context.getUnsafe(fiber.context, CurrentCaller),
        request,
        stats: request.stats,
        limits: fiber.getRef(CurrentLimits)(),
        created: Math.floor(fiber.getRef(Clock.Clock).currentTimeMillisUnsafe() / 1000)
      }
    }),

    /**
     * The model of the requested name; both names are noted in the request's stats. A name that is unknown is looked up once more after the
     * server's list of models has been read again: the model may be new there. Fails with the error of an unknown name.
     */
    findModel: (
      { request: { key }, stats }: RunningRequest,
      requested: string,
      family: NameFamily = "usual"
    ): Effect.Effect<Route, GatewayError> => {
      stats.requestedModel = requested
      const noted = (found: Route | GatewayError) => {
        if (found instanceof GatewayError) return Effect.fail(found)
        stats.model = found.id
        return Effect.succeed(found)
      }
      const found = find(requested, family, key)
      return found instanceof GatewayError
        ? Effect.flatMap(readAgain, () => noted(find(requested, family, key)))
        : noted(found)
    },

    /** True if a target of the route may get a request of the family's contract as its caller wrote it. */
    passesWhole: (model: Route, family: FamilyName): boolean => completion.passesWhole(model, family),

    /** The server that compacts conversations on the route; `undefined` if the gateway has to. */
    compactor: ({ caller }: RunningRequest, model: Route): Compactor | undefined => completion.compactor(model, caller),

    /** Deletes the copy of a stored response that an account's server has. */
    forget: (caller: Caller, maker: Maker, id: string): Effect.Effect<void> => completion.forget(caller, maker, id),

    /** Answers with something that follows from several replies. */
    together: <A>(
      { caller, request }: RunningRequest,
      model: Route,
      conversation: Conversation,
      make: (replies: Replies) => Effect.Effect<A, GatewayError>
    ): Effect.Effect<A, GatewayError, Scope.Scope> =>
      completion.together({ caller, model, conversation, request, kept: false }, make),

    /**
     * Answers a conversation in the way of the format. `around` wraps the opening of a stream. `made`: how the reply is made of several.
     */
    respond: (
      { caller, request }: RunningRequest,
      model: Route,
      conversation: Conversation,
      { failure, frames, keepsText = false, stream, whole }: ReplyFormat,
      around?: (opening: Opening) => Opening,
      made?: MadeTogether
    ) => {
      const input = { caller, model, conversation, request, kept: keepsText }
      if (!stream) {
        return Effect.flatMap(
          made === undefined ? completion.whole(input) : completion.together(input, made.whole),
          whole
        )
      }
      const opening = made === undefined ? completion.stream(input) : completion.together(input, made.stream)
      return streamReply(around === undefined ? opening : around(opening), frames, failure, deadlines, patience())
    },

    /**
     * Counts a conversation's tokens, by the upstream if it can and has a slot free. Otherwise they are estimated, which waits for its turn
     * among all work on the gateway's own processor. A count is a request without tokens for the limits of its key.
     */
    countTokens: Effect.fnUntraced(function*(
      { caller, request }: RunningRequest,
      model: Route,
      conversation: Conversation
    ) {
      const count = yield* completion.count({ caller, model, conversation, request, kept: false })
      return count ?? (yield* inTurn(runCooperatively(estimateCooperatively(conversation))))
    })
  }
})
