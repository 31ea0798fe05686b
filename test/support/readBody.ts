/** Decodes a request body into a conversation as a style does, without a server. */
import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { Conversation } from "../../src/domain/Conversation.ts"
import type { GatewayError } from "../../src/domain/GatewayError.ts"
import { type Cooperative, runSync } from "../../src/domain/stream/cooperative.ts"

/** Sends a value as JSON through a reader and a decoder. */
export const conversationReader = <A>(
  read: (request: HttpServerRequest.HttpServerRequest) => Effect.Effect<A, GatewayError, Scope.Scope>,
  decode: (body: A) => Cooperative<Result.Result<Conversation, GatewayError>>
) =>
(body: unknown): Effect.Effect<Conversation, GatewayError> => {
  const request = new Request("http://localhost/", { method: "POST", body: JSON.stringify(body) })
  return read(HttpServerRequest.fromWeb(request)).pipe(
    Effect.flatMap((value) => Effect.fromResult(runSync(decode(value)))),
    Effect.scoped
  )
}

/** What every driver reads of a conversation: without the vendor fields, which are of use to servers of one contract only. */
export const withoutVendorFields = (conversation: Conversation): Conversation =>
  structured(conversation) as unknown as Conversation

const vendorNames: ReadonlySet<string> = new Set(["vendorFields", "vendorTools"])

/** Parts and conversations say that they have none; turns and tools leave them out. */
const saysNone = (value: object): boolean => "_tag" in value || "turns" in value

const structured = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(structured)
    : typeof value === "object" && value !== null
    ? Object.fromEntries(
      Object.entries(value).flatMap(([name, field]) => {
        if (!vendorNames.has(name)) return [[name, structured(field)]]
        return saysNone(value) ? [[name, undefined]] : []
      })
    )
    : value
