/**
 * Who calls: what receives a request of an endpoint for callers before its body is read. `gatewayEntrance.ts` has the gateway's own.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Caller } from "../accounts/Accounts.ts"
import type { Request } from "../completion/Request.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { EndpointPolicy } from "./EndpointPolicy.ts"
import { credentialOf, missingCredential } from "./RequestContext.ts"

/** A request whose caller is known. */
export interface Entered {
  readonly caller: Caller
  readonly request: Request
}

/** Receives requests of endpoints for callers. */
export class Entrance extends Context.Service<Entrance, {
  /** Says who calls, and adds to the request what follows it. Fails with the refusal to send. The scope is the request's. */
  readonly enter: (
    source: HttpServerRequest.HttpServerRequest,
    request: Request,
    policy: EndpointPolicy
  ) => Effect.Effect<Entered, GatewayError, Scope.Scope>
  /**
   * Refuses a request that asks for nothing yet, of a caller whose limits are used up. It reaches no server and counts for no limit, and is no
   * reason for a record to push out others.
   */
  readonly look: (entered: Entered) => Effect.Effect<void, GatewayError, Scope.Scope>
}>()("model-gateway/http/Entrance") {
  /**
   * Callers as an app knows them. `ownerOf` gets the credential of a request, from any header in which an SDK sends it, and returns the name
   * of the caller, or fails with the refusal to send.
   */
  static readonly layerOf = (
    ownerOf: (credential: string, source: HttpServerRequest.HttpServerRequest) => Effect.Effect<string, GatewayError>
  ): Layer.Layer<Entrance> =>
    Layer.succeed(Entrance, {
      enter: (source, request) => {
        const credential = credentialOf(source)
        return credential === undefined
          ? Effect.fail(missingCredential)
          : Effect.map(ownerOf(credential, source), (owner) => ({ caller: named(owner), request }))
      },
      look: () => Effect.void
    })

  /** Anyone may call, without a credential. */
  static readonly layerOpen: Layer.Layer<Entrance> = Layer.succeed(Entrance, {
    enter: (_, request) => Effect.succeed({ caller: anyone, request }),
    look: () => Effect.void
  })
}

const named = (owner: string): Caller => ({ _tag: "Managed", owner, target: undefined })

const anyone = named("anyone")
