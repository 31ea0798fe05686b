/**
 * The contract of the admin groups' middleware: who may call, `{detail}` errors, and the operator who calls. `middlewareLayers.ts`
 * implements it.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import type { ChangedField } from "../config/changedFields.ts"
import type { ConfigChange } from "../config/ConfigStore.ts"
import type { Role } from "../config/schema.ts"
import type { EndpointPolicy } from "../http/EndpointPolicy.ts"
import { detailErrors, errorsOf } from "../http/errorShapes.ts"
import type { CurrentRequest } from "../http/RequestContext.ts"
import type { Change } from "../usage/Change.ts"

/** An authenticated operator. */
export interface Operator {
  readonly who: Change["who"]
  readonly role: Role
  /** Whether the credential is still valid: it expires, and a logout or a change of the password ends it. */
  readonly holds: Effect.Effect<boolean>
}

/** A change of the configuration, or the fields of something that is not saved. */
export type Done = ConfigChange | { readonly fields: ReadonlyArray<ChangedField> }

/** The operator of a request. */
export interface ActingOperator extends Operator {
  /** Records what the operator did, in the history and in the log (`ChangeLog`). */
  readonly record: (action: string, done?: Done) => Effect.Effect<void>
}

/** The operator who makes the current request. */
export class CurrentOperator
  extends Context.Service<CurrentOperator, ActingOperator>()("model-gateway/admin/Operator")
{}

const family = { errors: detailErrors, uncached: true } as const

/** Accepts a JWT, the admin key or a browser's session cookie. */
export class AdminMiddleware
  extends HttpApiMiddleware.Service<AdminMiddleware, { provides: CurrentRequest | CurrentOperator }>()(
    "model-gateway/admin/AdminMiddleware",
    { error: errorsOf(detailErrors) }
  )
{
  static readonly facts: EndpointPolicy = { ...family, access: "admin" }
}

/** Asks for no credential: login, sessions, and verification, which checks its own. */
export class AdminOpenMiddleware extends HttpApiMiddleware.Service<AdminOpenMiddleware, { provides: CurrentRequest }>()(
  "model-gateway/admin/AdminOpenMiddleware",
  { error: errorsOf(detailErrors) }
) {
  static readonly facts: EndpointPolicy = { ...family, access: "none" }
}
