/**
 * What the gateway sends has the types that the vendors' SDKs publish: checked by the compiler, schema by schema. That what
 * is sent keeps to these schemas is `frames.test.ts`'s matter.
 */
import type Anthropic from "@anthropic-ai/sdk"
import type * as GenAI from "@google/genai"
import type OpenAI from "openai"
import type * as Chat from "../../src/contracts/chat/schema.ts"
import type * as Generate from "../../src/contracts/generate/schema.ts"
import type * as Messages from "../../src/contracts/messages/schema.ts"
import type { ResponseEvent } from "../../src/contracts/responses/events.ts"
import type { ResponseObject } from "../../src/contracts/responses/ResponseObject.ts"
import type { EmbeddingsList } from "../../src/styles/embeddings/Api.ts"
import type * as Models from "../../src/styles/models/Api.ts"

/** The SDKs' types are mutable. */
type Mutable<A> = A extends ReadonlyArray<infer Item> ? Array<Mutable<Item>>
  : A extends object ? { -readonly [key in keyof A]: Mutable<A[key]> }
  : A

/** What a schema's values are. */
type Sent<S extends { readonly Type: unknown }> = Mutable<S["Type"]>

type Replace<A, Key extends PropertyKey, By> = A extends unknown ? Omit<A, Key> & By : never

/**
 * A response, but for what the SDK has closed lists of and the gateway words of its own (an error's code), and for what is
 * sent back as the caller wrote it. The vendor's own first events have `usage: null`, which the SDK's type leaves out.
 */
type Response<A> = A extends { readonly usage: infer U }
  ? Omit<A, InOwnWords | "usage"> & Pick<OpenAI.Responses.Response, InOwnWords> & { usage: NonNullable<U> }
  : never
type InOwnWords = "error" | "tools" | "tool_choice" | "reasoning" | "text" | "service_tier"

type EventOfResponse<A> = A extends { readonly response: infer R } ? Omit<A, "response"> & { response: Response<R> } : A

/** A message, but for the tier of servers that have another one than the vendor. */
type InVendorsTiers<A> = A extends { readonly usage: { readonly service_tier: unknown } }
  ? Omit<A, "usage"> & { usage: Omit<A["usage"], "service_tier"> & Pick<Anthropic.Usage, "service_tier"> }
  : A extends { readonly message: infer M } ? Omit<A, "message"> & { message: InVendorsTiers<M> }
  : A

/** Enums by the words that stand for them in JSON. */
type Words<A> = A extends string ? `${A}`
  : A extends ReadonlyArray<infer Item> ? Array<Words<Item>>
  : A extends object ? { [key in keyof A]: Words<A[key]> }
  : A

/** Without what the SDK's class computes. */
type GenerateResponse = Words<
  Omit<
    GenAI.GenerateContentResponse,
    "text" | "data" | "functionCalls" | "executableCode" | "codeExecutionResult" | "initialPromptTokenCount"
  >
>

/** `Ours` may stand where the SDK has `Theirs`. */
type Fits<Ours extends Theirs, Theirs> = Ours

/** Every object and event, beside its type in the vendor's SDK. */
export interface VendorTypes {
  readonly chatCompletion: Fits<Sent<typeof Chat.ChatCompletion>, OpenAI.ChatCompletion>
  readonly chatChunk: Fits<Sent<typeof Chat.ChatChunk>, OpenAI.ChatCompletionChunk>
  readonly model: Fits<Sent<typeof Models.ModelEntry>, OpenAI.Model>
  readonly response: Fits<Response<Sent<typeof ResponseObject>>, OpenAI.Responses.Response>
  readonly responseEvent: Fits<EventOfResponse<Sent<typeof ResponseEvent>>, OpenAI.Responses.ResponseStreamEvent>
  /** The SDK decodes Base64 before anybody sees it. */
  readonly embeddings: Fits<
    Replace<Sent<typeof EmbeddingsList>, "data", {
      data: Array<Replace<Sent<typeof EmbeddingsList>["data"][number], "embedding", { embedding: Array<number> }>>
    }>,
    OpenAI.CreateEmbeddingResponse
  >
  readonly message: Fits<InVendorsTiers<Sent<typeof Messages.Message>>, Anthropic.Message>
  /** The SDK keeps pings and errors to itself. */
  readonly messagesEvent: Fits<
    InVendorsTiers<Exclude<Sent<typeof Messages.MessagesStreamEvent>, { readonly type: "ping" | "error" }>>,
    Anthropic.RawMessageStreamEvent
  >
  readonly messagesCount: Fits<Sent<typeof Messages.TokenCount>, Anthropic.MessageTokensCount>
  /** A capability that the gateway does not know is absent. */
  readonly messagesModel: Fits<
    Omit<Sent<typeof Messages.MessagesModel>, "capabilities">,
    Omit<Anthropic.ModelInfo, "capabilities">
  >
  readonly generateResponse: Fits<Sent<typeof Generate.GenerateResponse>, GenerateResponse>
  readonly generateChunk: Fits<Sent<typeof Generate.GenerateChunk>, GenerateResponse>
  readonly generateCount: Fits<Sent<typeof Generate.TokenCount>, Words<Omit<GenAI.CountTokensResponse, never>>>
  readonly generateModel: Fits<Sent<typeof Generate.GenerateModel>, Words<GenAI.Model>>
}
