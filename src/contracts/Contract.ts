/**
 * A contract: how it is read and written, and its facts. Each has one value, `contract.ts`; `contracts.ts` lists them all. No other folder
 * compares names of contracts.
 */
import type * as Result from "effect/Result"
import type { MostUsed } from "../domain/bill.ts"
import type { Conversation, Sampling } from "../domain/Conversation.ts"
import type { ErrorFamily } from "../domain/errorBody.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { Json, JsonFields, JsonRecord } from "../domain/json.ts"
import type { Reply } from "../domain/Reply.ts"
import type { FinishReason } from "../domain/ReplyEvent.ts"
import type { ExtraPlace } from "../domain/replyExtras.ts"
import type { Cooperative } from "../domain/stream/cooperative.ts"
import type { UpstreamEvent, UpstreamExtra } from "../domain/UpstreamEvent.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { FamilyName } from "../domain/VendorFields.ts"
import type { ChunkDecoder } from "./shared/ChunkDecoder.ts"
import type { Family } from "./shared/Family.ts"
import type { Faults } from "./shared/Faults.ts"
import type { FrameRenderer } from "./shared/FrameRenderer.ts"
import type { Limits } from "./shared/limits.ts"
import type { Repairs } from "./shared/validHistory.ts"

/** What of a value has a place in a reply: all of it, what a function says, or some fields. */
export type Shown = true | ((value: Json) => boolean) | { readonly [field: string]: Shown }

/** The fields of a server's reply that have a place, by name. */
export type ShownFields = { readonly [field: string]: Shown }

/** The same, by the part of the reply that the fields belong to. */
export type ShownPlaces = { readonly [At in ExtraPlace]?: ShownFields }

/** How a server of the contract keeps prompts. Source: the vendors' documents on prompt caching. */
export interface PromptCaching {
  /** Tokens from which a prompt is kept. */
  readonly least: number
  /** Seconds that a prompt is kept after its last use, and those of one that the gateway marks for a short time. */
  readonly lifetime: number
  readonly markedLifetime: number
}

/** How requests of the contract say limits and sampling. */
export interface RequestWords {
  /** The field of the conversation's turns. */
  readonly turns: string
  /** The path of the limit of output that a client has to set. */
  readonly outputLimit: string
  /** The path of a field of the limit. A contract with one field has it for both. */
  readonly limitPath: (key: "maxTokens" | "maxCompletionTokens") => string
  /** The path of a sampling parameter; `name` is what most contracts call it. */
  readonly samplingPath: (key: keyof Sampling, name: string) => string
  /** The paths of the choice among tools, and of the schema of the reply. */
  readonly toolChoice: string
  readonly schema: string
  /** The paths of fields that servers know by another name, by that name. */
  readonly paths: ReadonlyMap<string, string>
}

/** What a block of sealed reasoning leaves for the calls that follow it: fields, or an item of its own. */
export type KeptReasoning =
  | { readonly _tag: "Details"; readonly fields: JsonFields }
  | { readonly _tag: "Item"; readonly item: JsonFields }

/** The most calls of the tools that a server runs, by their names in bills; or why they have no bound. */
export type CallBounds = NonNullable<MostUsed["tools"]> | GatewayError

/** The facts of a contract. */
export interface ContractFacts {
  /** Contracts of one vendor share the form of errors, and the logins of their clients. */
  readonly vendor: ErrorFamily
  readonly caching: PromptCaching
  /** How a reply says why it ended. */
  readonly finishNames: Readonly<Record<FinishReason, string>>
  /** The same for a reply that failed; `undefined` where an error alone says it. */
  readonly failureName: string | undefined
  readonly words: RequestWords
  /** Replies fit every schema that a request has for them. Otherwise, every schema with `strict`. */
  readonly bindsEverySchema: boolean
  /** What it accepts of a request; requests for its servers are brought within. */
  readonly limits: Limits
  /**
   * How a conversation for a server of the contract differs from what its caller wrote, because the contract refuses that. `isWhole`: the server gets the
   * caller's own request.
   */
  readonly repairs: (conversation: Conversation, isWhole: boolean) => Repairs
  /** A client of the contract gets every field of an OpenAI-compatible server's reply. Otherwise, those that have a place in its own. */
  readonly shows: ShownPlaces | "all"
  /** Servers of the contract leave out a count of 0, so that a count of the prompt says how much came from a cache. */
  readonly leavesZeroOut: boolean
  /** What sealed reasoning leaves for later calls; `undefined` if nothing. */
  readonly keptReasoning: (value: JsonFields) => KeptReasoning | undefined
  /** Its servers may refuse a call that comes back without the thinking before it, which they sent as text. */
  readonly wantsThinking: boolean
  /** The events that clients of other contracts get for an event of the contract alone; `undefined` if they get the event itself. */
  readonly elsewhere: (event: UpstreamExtra) => ReadonlyArray<UpstreamEvent> | undefined
  /** The tools of a client's conversation that servers of other contracts get. */
  readonly declaredElsewhere: (conversation: Conversation) => Conversation["tools"]
  /** The most choices that a reply of its servers has. */
  readonly mostChoices: number
  /** The most calls of the vendor's tools in a conversation that a server of the contract gets. */
  readonly callBounds: (conversation: Conversation) => CallBounds
}

/** What an error of a server says. */
export type ErrorFacts = Partial<Omit<ConstructorParameters<typeof UpstreamFailure>[0], "phase">>

/** How a contract writes one reply to its client. */
export interface ReplyWriter {
  /** The body of a reply that is not streamed. */
  readonly whole: (reply: Reply) => object
  /** Starts the frames of a streamed reply. */
  readonly frames: () => FrameRenderer
}

/** A contract. The value of each has types of its own where a `never` stands here. */
export interface Contract {
  /** The name by which elements and events of the contract are marked. */
  readonly id: FamilyName
  readonly facts: ContractFacts
  /** What becomes of each field of a client's request. */
  readonly request: Family
  /**
   * Writes the body for a server by its name of the model. `server` has what the driver knows of the server; by default nothing is known of it.
   */
  readonly writeRequest: (
    model: string,
    conversation: Conversation,
    server: undefined,
    isWhole: boolean
  ) => Cooperative<string>
  /** Starts to read a server's reply. Without a form it reads a recorded one. */
  readonly readReply: (form?: never) => ChunkDecoder
  /** Reads the JSON of a server's error; unreadable parts yield no facts. */
  readonly readError: (body: unknown) => ErrorFacts
  /** True if a server's object is an error instead of a reply. */
  readonly isError: (value: JsonRecord) => boolean
}

/** A contract whose requests need nothing but themselves to be read, unlike those that continue a stored response. */
export interface ConversationContract extends Contract {
  /** Reads a client's request. Fails with the first fault, which names its field; `faults` has what has no effect too. */
  readonly readRequest: (body: never, faults: Faults) => Cooperative<Result.Result<Conversation, GatewayError>>
  readonly writeReply: (about: never) => ReplyWriter
  /** The last frames of a stream that fails before its first event. */
  readonly writeFailure: (error: GatewayError, requestId: string) => string
}
