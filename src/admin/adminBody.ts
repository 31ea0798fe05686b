/**
 * Bodies of the admin API. An unknown field is refused: ignoring `limit` where `limits` was meant would make a key without
 * limits.
 */
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { ConfigInvalid } from "../config/ConfigError.ts"
import { isJsonObject, type RawConfig } from "../config/json.ts"
import { fieldsOf, findUnknown } from "../config/unknownFields.ts"
import { type GatewayError, gatewayError, invalidRequest } from "../domain/GatewayError.ts"
import { mayBeEmpty } from "../http/documented.ts"
import { type BodyOptions, jsonBody, payloadOf, payloadReader, type Reads } from "../http/jsonBody.ts"

type Read<A> = (request: HttpServerRequest.HttpServerRequest) => Effect.Effect<A, GatewayError, Scope.Scope>

/** Refuses a body with a field that is in no schema of `schemas`; the error has a fault for each such field. */
export const refusing = (schemas: ReadonlyArray<Schema.Constraint>): NonNullable<BodyOptions["refuse"]> => {
  const known = fieldsOf(schemas)
  return function*(body) {
    const unknown = yield* findUnknown(known, body)
    if (unknown.length === 0) return undefined
    const { faults, message } = ConfigInvalid.of(unknown)
    return gatewayError("invalid_request", message, { param: faults[0]?.field, faults })
  }
}

/** Makes a reader of an endpoint's body. Build it once, not per request. */
export const adminBodyOf = <S extends Schema.Constraint>(
  endpoint: Reads<S>,
  options?: Omit<BodyOptions, "mayBeEmpty" | "refuse">
): Read<S["Type"]> =>
  payloadReader(endpoint, { ...options, mayBeEmpty: mayBeEmpty(endpoint), refuse: refusing([payloadOf(endpoint)]) })

/**
 * Makes a reader of parts of a configuration. It checks only that the names of fields are in `schemas`: the configuration
 * store checks values in slices, since a body may list a hundred thousand accounts.
 */
export const jsonObjectBodyOf = (
  schemas: ReadonlyArray<Schema.Constraint>,
  options?: Omit<BodyOptions, "refuse">
): Read<RawConfig> => {
  const read = jsonBody(Schema.Unknown, { ...options, refuse: refusing(schemas) })
  return (request) =>
    Effect.flatMap(read(request), (body) =>
      isJsonObject(body)
        ? Effect.succeed(body)
        : Effect.fail(invalidRequest("The request body must be a JSON object")))
}
