import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Option from "effect/Option"

/** The address that wrong credentials are counted by. */
export const addressOf = (request: HttpServerRequest.HttpServerRequest): string =>
  Option.getOrElse(request.remoteAddress, () => "unknown")
