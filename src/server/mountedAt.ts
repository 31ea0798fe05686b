/**
 * The path below which the gateway is mounted.
 */
import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Option from "effect/Option"

/** What routers took off the path of the request that is being handled; empty where nothing was, or outside a request. */
export const mountedAt: Effect.Effect<string> = Effect.map(
  Effect.serviceOption(HttpServerRequest.HttpServerRequest),
  Option.match({
    onNone: () => "",
    onSome: ({ originalUrl, url }) => {
      const path = pathOf(originalUrl)
      const own = pathOf(url)
      return path.endsWith(own) ? path.slice(0, path.length - own.length) : ""
    }
  })
)

/** The path of a URL, whatever its authority is: that is what the caller's `Host` says, which need not be a valid one. */
const pathOf = (url: string): string => /^(?:[a-z][a-z0-9+.-]*:\/\/[^/?#]*)?([^?#]*)/i.exec(url)?.[1] ?? ""
