/** What is kept of responses, and what a store of them offers. */
import type * as Effect from "effect/Effect"
import type { Json } from "../../../domain/Conversation.ts"
import type { GatewayError } from "../../../domain/GatewayError.ts"

/** What is kept of a response. */
export interface StoredResponse {
  readonly id: string
  /** The response object as JSON text, ready to be sent. */
  readonly body: string
  /** The items of the conversation before the response's own output, to list and to continue them. */
  readonly items: ReadonlyArray<Json>
  /** The bytes that the items cost, where they are counted already: there may be very many (`jsonSizeSliced`). */
  readonly itemsSize?: number
}

/** Bounds of the store, over all callers. */
export interface StoreLimits {
  readonly count: number
  readonly bytes: number
}

/** A response that is still being made. */
export interface OpenResponse {
  /**
   * Stores the response's final object. Does nothing when the response was removed meanwhile. Synchronous, so that a
   * response is final in the store before the frame that says so leaves; where `written` has something to do, after it.
   */
  readonly settleUnsafe: (body: string) => void
  /** What has to be done before frames that tell of what was stored may leave; `undefined` where that is nothing. */
  readonly written: () => Effect.Effect<void> | undefined
}

/** The stored responses of all callers. */
export interface ResponsesStoreShape {
  /**
   * The response with this id, if this owner created it and it has not expired. Fails with `store_unavailable` where nodes
   * share a store that does not answer.
   */
  readonly get: (owner: string, id: string) => Effect.Effect<StoredResponse | undefined, GatewayError>
  /** Stores a response that is final. `share` names those who are one owner when room is made; else it is the owner. */
  readonly put: (owner: string, response: StoredResponse, share?: string) => Effect.Effect<void>
  /**
   * Stores a response that is still being made; it does not expire before it is settled. Synchronous, so that it is there
   * before the frame that tells its id leaves.
   */
  readonly openUnsafe: (owner: string, response: StoredResponse, share?: string) => OpenResponse
  /** Removes a response; false when this owner has none with this id. Fails as `get` does. */
  readonly remove: (owner: string, id: string) => Effect.Effect<boolean, GatewayError>
  /** What is held at the moment. */
  readonly held: Effect.Effect<StoreLimits>
}
