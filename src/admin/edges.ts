/**
 * The edges of the admin groups as middlewares: who may call, and `{detail}` errors. `edgeLayers.ts` has what they do.
 */
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import { detailErrors } from "../http/errorShapes.ts"
import type { CurrentRequest } from "../http/Request.ts"
import type { CurrentOperator } from "./Operator.ts"

/** A JWT or the admin key, or a browser's session. */
export class AdminEdge extends HttpApiMiddleware.Service<AdminEdge, { provides: CurrentRequest | CurrentOperator }>()(
  "model-gateway/admin/AdminEdge",
  { error: detailErrors.errors }
) {}

/** No credential: login, and verification, which checks its own. */
export class AdminOpenEdge extends HttpApiMiddleware.Service<AdminOpenEdge, { provides: CurrentRequest }>()(
  "model-gateway/admin/AdminOpenEdge",
  { error: detailErrors.errors }
) {}
