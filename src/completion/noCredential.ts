/** The errors of requests whose caller has no credential for any target. */
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import type { Route } from "../domain/routes.ts"

/** The refusal of a caller without the login that the targets need. */
export const noLogin = gatewayError(
  "vendor_login_required",
  "This model needs the client's own login: send it in its usual header, and the gateway key in x-gateway-key"
)

/** The refusal of a caller's own token, whom the names of other upstreams do not concern. */
export const notOfDirect = ({ id }: Route): GatewayError =>
  gatewayError(
    "model_not_allowed",
    `Your credential is not a gateway key, so it can only use models of the default upstream, and "${id}" is not one of them. Use a gateway key for this model.`,
    { param: "model" }
  )
