/**
 * Stored responses as the style sees them (spec "Stored response"). Only the caller that created a response can read it. `memoryResponses.ts`
 * and `sharedResponses.ts` have the gateway's own.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { GatewayError } from "../../../domain/GatewayError.ts"
import type { Json } from "../../../domain/json.ts"
import type { Maker } from "../../../domain/makers.ts"

/** A stored response. */
export interface StoredResponse {
  readonly id: string
  /** The response object as JSON text. */
  readonly body: string
  /** The items of the conversation before the response's output. */
  readonly items: ReadonlyArray<Json>
  /** The size of `items` in bytes (`jsonSizeSliced`). The store computes it when it is absent, without yields. */
  readonly itemsSize?: number
  /** The account by which the server stores the response too. */
  readonly heldBy?: Maker | undefined
}

/** Limits of the store over all callers, or what it holds. */
export interface StoreLimits {
  readonly count: number
  readonly bytes: number
}

/** A response in progress. */
export interface OpenResponse {
  /**
   * Stores the final response object; does nothing for a removed response. Synchronous, so that the store has it before the
   * client receives the last frame. A shared store has it once `written` is done.
   */
  readonly finalizeUnsafe: (body: string, heldBy?: Maker | undefined) => void
  /** The pending writes, which must finish before the client may receive more frames; `undefined` without any. */
  readonly written: () => Effect.Effect<void> | undefined
}

/** What stores responses. */
export interface ResponsesStoreShape {
  /**
   * The response with this id; `undefined` when the owner did not create it or it has expired. Fails with
   * `store_unavailable` when the shared store does not answer.
   */
  readonly get: (owner: string, id: string) => Effect.Effect<StoredResponse | undefined, GatewayError>
  /** Stores a final response. A full store removes responses of the largest `share`, which is the owner by default. */
  readonly put: (owner: string, response: StoredResponse, share?: string) => Effect.Effect<void>
  /**
   * Stores a response in progress; it expires only after it is final. Synchronous, so that the store has it before the client
   * receives its id.
   */
  readonly openUnsafe: (owner: string, response: StoredResponse, share?: string) => OpenResponse
  /** Removes a response; returns false when `get` would return `undefined`. Fails as `get` does. */
  readonly remove: (owner: string, id: string) => Effect.Effect<boolean, GatewayError>
  /** The number and bytes of the stored responses. */
  readonly held: Effect.Effect<StoreLimits>
}

/** The stored responses of all callers. */
export class ResponsesStore extends Context.Service<ResponsesStore, ResponsesStoreShape>()(
  "model-gateway/responses-store/ResponsesStore"
) {}
