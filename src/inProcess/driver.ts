/**
 * Upstreams of an embedder's own.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { Driver } from "../upstream/Upstream.ts"
import { Upstream } from "../upstream/Upstream.ts"

const unsupported = (phase: "login" | "session") =>
  Effect.fail(
    new UpstreamFailure({ phase, kind: "refused", status: 501, message: `This upstream knows no ${phase}s` })
  )

const noSessions = unsupported("session")

/** A failure that is none of the drivers' own is a mistake in the driver: it is told in words, with what was thrown. */
const illFormed = (name: string) => (cause: Cause.Cause<UpstreamFailure>): Effect.Effect<never, UpstreamFailure> => {
  const failure: unknown = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (failure === undefined || failure instanceof UpstreamFailure) return Effect.failCause(cause)
  return Effect.die(
    new Error(`The driver "${name}" failed with what is no UpstreamFailure; make one with new UpstreamFailure(…)`, {
      cause: failure
    })
  )
}

/**
 * A driver that runs completions; all else is optional. By default it needs no credential and keeps no sessions, so it has
 * one account of its own when none is configured.
 */
export const makeDriver = (
  driver: Pick<Driver, "complete"> & { readonly [K in keyof Driver]?: Driver[K] | undefined }
): Driver => {
  const name = driver.name ?? "custom"
  const embed = driver.embed?.bind(driver)
  // Member by member: those of a class are none of the object's own, and one that is given as undefined is not given.
  return {
    name,
    capabilities: driver.capabilities ?? { login: false, sessions: false, anonymous: true, sampling: false },
    models: driver.models ?? [],
    login: (login) => driver.login?.(login) ?? unsupported("login"),
    verify: (token) => driver.verify?.(token) ?? Effect.void,
    createSession: (token) => driver.createSession?.(token) ?? noSessions,
    listSessions: (token, count) => driver.listSessions?.(token, count) ?? noSessions,
    deleteSession: (token, id) => driver.deleteSession?.(token, id) ?? noSessions,
    deleteAllSessions: (token) => driver.deleteAllSessions?.(token) ?? noSessions,
    ...(embed === undefined ? {} : { embed }),
    complete: (request) =>
      Effect.map(
        Effect.catchCause(driver.complete(request), illFormed(name)),
        (reply) => ({
          ...reply,
          events: Stream.catchCause(reply.events, (cause) => Stream.fromEffect(illFormed(name)(cause)))
        })
      )
  }
}

/** An upstream that is always this driver, whatever the configuration says. */
export const fixedUpstream = (driver: Driver): Layer.Layer<Upstream> =>
  Layer.succeed(Upstream, { driver: Effect.succeed(driver) })
