/**
 * Signs the requests to one server, by the server's clock.
 *
 * The one thing to know: a server refuses signatures of another time than its own. The time of its refusal corrects the clock, and the
 * request is sent once more.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { signatureOf, type SigningScope } from "../../credentials/sigV4.ts"
import { isSkewed } from "../../credentials/tokenServers.ts"
import { keysOfToken } from "../../domain/ownLogin.ts"
import type { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { RequestBudget } from "../budget.ts"
import type { Exchange } from "../Exchange.ts"
import type { ExchangeRequest, Sign } from "../ExchangeRequest.ts"

/** Headers that a signature is of, beside the host: what proxies on the way leave as they are. */
const isSigned = (name: string): boolean => name === "content-type" || name.startsWith("x-amz-")

const signedHeaders = (headers: ExchangeRequest["headers"]) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => isSigned(name)))

/** Makes the signer of one server. */
export const makeSigner = (scope: SigningScope) => {
  /** Milliseconds by which the server's clock is ahead of this computer's, as its last refusal has shown. */
  let ahead = 0
  return {
    /** The signature of requests with a token; `undefined` for one that goes in a header. */
    of: (token: string | undefined): Sign | undefined => {
      const keys = token === undefined ? undefined : keysOfToken(token)
      if (keys === undefined) return undefined
      return ({ body, headers, method, origin, path }) =>
        // A body that is not known before it leaves has no signature: servers that ask for one have no endpoint for it.
        Stream.isStream(body) ?
          Effect.succeed({}) :
          Effect.flatMap(
            Clock.currentTimeMillis,
            (now) =>
              signatureOf(
                { method, url: origin + path, headers: signedHeaders(headers), body },
                keys,
                scope,
                now + ahead
              )
          )
    },
    /** Learns the server's time from a refusal. */
    heard: (exchange: Pick<Exchange, "header" | "status">, now: number): void => {
      if (exchange.status !== 401 && exchange.status !== 403) return
      const date = Date.parse(exchange.header("date") ?? "")
      if (!Number.isNaN(date) && isSkewed(date, now + ahead)) ahead = date - now
    },
    /** Repeats a request once whose refusal has shown that its signature had another time. */
    repeated: <A>(
      token: string | undefined,
      send: () => Effect.Effect<A, UpstreamFailure>,
      budget: RequestBudget
    ): Effect.Effect<A, UpstreamFailure> => {
      if (token === undefined || keysOfToken(token) === undefined) return send()
      return Effect.suspend(() => {
        const before = ahead
        return Effect.catch(send(), (failure) => ahead === before || !budget.takeCall() ? Effect.fail(failure) : send())
      })
    }
  }
}
