/**
 * What an edge is beside its middleware, stated at its class: who may call and how a failure is worded. What edges do, what the
 * documents say of credentials, and how a path without a route is answered are made of it.
 */
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import { hasProperty } from "effect/Predicate"
import type { ErrorShape } from "./errorShapes.ts"

/**
 * Who may call: nobody is asked, a business key, the same in the content-generation style's words, an operator, an operator
 * who is no browser, one with a JWT.
 */
export type Access = "none" | "business" | "generate" | "admin" | "key" | "jwt"

/** What an edge is. */
export interface EdgeFacts {
  readonly errors: ErrorShape
  readonly access: Access
  /** Where the family's SDK looks for the request's id. */
  readonly idHeader?: string
  /** What the record calls such requests where it is not their group. */
  readonly style?: string
  /** Replies stay out of every cache. */
  readonly uncached?: true
}

/** The class of an edge's middleware. */
export interface EdgeClass {
  readonly facts: EdgeFacts
}

const isEdge = (middleware: unknown): middleware is EdgeClass => hasProperty(middleware, "facts")

/** What the edge before an endpoint is. Throws for an endpoint without one: that is an error of the contract. */
export const edgeOf = ({ identifier, middlewares }: HttpApiEndpoint.Top): EdgeFacts => {
  for (const middleware of middlewares) {
    if (isEdge(middleware)) return middleware.facts
  }
  throw new Error(`The endpoint ${identifier} has no edge`)
}
