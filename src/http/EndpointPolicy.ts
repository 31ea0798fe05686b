/**
 * Static facts about a group's middleware: access and error format. The middleware, the documented credentials and the errors of
 * unknown paths are derived from them.
 */
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import { hasProperty } from "effect/Predicate"
import type { ErrorShape } from "../contracts/shared/errorShapes.ts"

/**
 * Required credential: no credential, a business key, a business key in every form in which SDKs send one, an operator, an
 * operator other than a browser session, a JWT.
 */
export type Access = "none" | "business" | "anyForm" | "admin" | "key" | "jwt"

/** The policy of a middleware. */
export interface EndpointPolicy {
  readonly errors: ErrorShape
  readonly access: Access
  /** The response header in which the family's SDK expects the request id. */
  readonly idHeader?: string
  /** The error format and the header of the id for requests in another family's form. */
  readonly inForm?: (
    headers: { readonly [name: string]: string | undefined }
  ) => Pick<EndpointPolicy, "errors" | "idHeader"> | undefined
  /** Style of the requests in stats; the group's name if absent. */
  readonly style?: string
  /** Requests are not added to the usage history. */
  readonly unrecorded?: true
  /** Responses must not be cached. */
  readonly uncached?: true
}

/** The class of a middleware. */
interface MiddlewareClass {
  readonly facts: EndpointPolicy
}

const hasPolicy = (middleware: unknown): middleware is MiddlewareClass => hasProperty(middleware, "facts")

/** The policy of an endpoint. Throws for an endpoint without one, which is a bug in the contract. */
export const policyOf = ({ identifier, middlewares }: HttpApiEndpoint.Top): EndpointPolicy => {
  for (const middleware of middlewares) {
    if (hasPolicy(middleware)) return middleware.facts
  }
  throw new Error(`The endpoint ${identifier} has no middleware with a policy`)
}
