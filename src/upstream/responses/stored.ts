/** Responses that a server stores. */
import * as Effect from "effect/Effect"
import type { ServerClient } from "../server/ServerClient.ts"
import type { Seals } from "../Upstream.ts"

/** Makes the deletion of a stored response. */
export const forgetOn = (client: ServerClient): Seals["forget"] =>
  Effect.fnUntraced(function*(token, id) {
    const path = `/responses/${encodeURIComponent(id)}`
    yield* client.readBody(yield* client.ask("DELETE", path, token))
  }, Effect.scoped)
