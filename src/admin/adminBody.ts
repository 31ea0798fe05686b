/**
 * Bodies of the admin API. A field that an endpoint does not know refuses the request: left out in silence, `limit` in the
 * place of `limits` would make a key without limits.
 */
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { ConfigInvalid } from "../config/ConfigError.ts"
import { isJsonObject, type RawConfig } from "../config/json.ts"
import { fieldsOf, findUnknown } from "../config/unknownFields.ts"
import { type GatewayError, gatewayError, invalidRequest } from "../domain/GatewayError.ts"
import { bodyOf, type BodyOptions, jsonBody, payloadOf, type Reads } from "../http/jsonBody.ts"

type Read<A> = (request: HttpServerRequest.HttpServerRequest) => Effect.Effect<A, GatewayError, Scope.Scope>

/** Refuses a body with a field that none of the schemas has; the error has a fault for each such field. */
export const refusing = (schemas: ReadonlyArray<Schema.Constraint>): NonNullable<BodyOptions["refuse"]> => {
  const known = fieldsOf(schemas)
  return function*(body) {
    const unknown = yield* findUnknown(known, body)
    if (unknown.length === 0) return undefined
    const { faults, message } = ConfigInvalid.of(unknown)
    return gatewayError("invalid_request", message, { param: faults[0]?.field, faults })
  }
}

/** Makes a reader of an admin endpoint's body. Build it once, not per request. */
export const adminBodyOf = <S extends Schema.Constraint>(
  endpoint: Reads<S>,
  options?: Omit<BodyOptions, "refuse">
): Read<S["Type"]> => bodyOf(endpoint, { ...options, refuse: refusing([payloadOf(endpoint)]) })

const objectOf = (body: unknown) =>
  isJsonObject(body) ? Effect.succeed(body) : Effect.fail(invalidRequest("The request body must be a JSON object"))

/**
 * Makes a reader of a body of parts of a configuration, which the store checks as a whole and in slices, since they may list
 * a hundred thousand accounts. Only names of fields are looked at here; `schemas` has every field that is taken.
 */
export const jsonObjectBodyOf = (
  schemas: ReadonlyArray<Schema.Constraint>,
  options?: Omit<BodyOptions, "refuse">
): Read<RawConfig> => {
  const read = jsonBody(Schema.Unknown, { ...options, refuse: refusing(schemas) })
  return (request) => Effect.flatMap(read(request), objectOf)
}
