/**
 * The edges of the admin groups as middlewares: who may call, and `{detail}` errors. `edgeLayers.ts` has what they do.
 */
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import type { EdgeFacts } from "../http/edgeFacts.ts"
import { detailErrors } from "../http/errorShapes.ts"
import type { CurrentRequest } from "../http/Request.ts"
import type { CurrentOperator } from "./Operator.ts"

const family = { errors: detailErrors, uncached: true } as const

/** A JWT or the admin key, or a browser's session. */
export class AdminEdge extends HttpApiMiddleware.Service<AdminEdge, { provides: CurrentRequest | CurrentOperator }>()(
  "model-gateway/admin/AdminEdge",
  { error: detailErrors.errors }
) {
  static readonly facts: EdgeFacts = { ...family, access: "admin" }
}

/** No credential: login, and verification, which checks its own. */
export class AdminOpenEdge extends HttpApiMiddleware.Service<AdminOpenEdge, { provides: CurrentRequest }>()(
  "model-gateway/admin/AdminOpenEdge",
  { error: detailErrors.errors }
) {
  static readonly facts: EdgeFacts = { ...family, access: "none" }
}
