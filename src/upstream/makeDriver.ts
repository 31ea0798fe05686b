/**
 * Drivers of an embedding app.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { type Driver, type Sends, sendsNothing } from "./Upstream.ts"

/** Turns a failure that is not an `UpstreamFailure` into a defect: it is a bug in the driver. */
const illFormed = (name: string) => (cause: Cause.Cause<UpstreamFailure>): Effect.Effect<never, UpstreamFailure> => {
  const failure: unknown = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (failure === undefined || failure instanceof UpstreamFailure) return Effect.failCause(cause)
  return Effect.die(
    new Error(`The driver "${name}" must fail with an UpstreamFailure; make one with new UpstreamFailure(…)`, {
      cause: failure
    })
  )
}

/** A driver as an app gives it. */
export type GivenDriver =
  & Pick<Driver, "complete">
  & { readonly [K in Exclude<keyof Driver, "sends">]?: Driver[K] | undefined }
  & { readonly sends?: Partial<Sends> | undefined }

/**
 * Makes a driver; only `complete` is required. By default the driver needs no credential and has no sessions, so the gateway
 * uses one anonymous account when the configuration has no accounts.
 */
export const makeDriver = (
  driver: GivenDriver
): Driver => {
  const { capabilities = {}, contract, models = [], name = "custom", secrets = [], sends } = driver
  // A spread would miss the methods of a class, and members set to undefined would hide the defaults.
  return {
    name,
    isAnonymous: driver.isAnonymous ?? capabilities.login === undefined,
    sends: { ...sendsNothing, ...sends },
    models,
    verify: (token) => driver.verify?.(token) ?? Effect.void,
    contract,
    secrets,
    capabilities,
    complete: (request) => {
      // When an app's own call leaves is not known.
      request.budget.isSent = true
      return Effect.map(
        Effect.catchCause(driver.complete(request), illFormed(name)),
        (reply) => ({
          ...reply,
          events: Stream.catchCause(reply.events, (cause) => Stream.fromEffect(illFormed(name)(cause)))
        })
      )
    }
  }
}
