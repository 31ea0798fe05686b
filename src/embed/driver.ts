/**
 * Upstreams of an embedder's own.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { Driver } from "../upstream/Upstream.ts"
import { Upstream } from "../upstream/Upstream.ts"

const unsupported = (phase: "login" | "session") =>
  Effect.fail(
    new UpstreamFailure({ phase, kind: "refused", status: 501, message: `This upstream knows no ${phase}s` })
  )

const noSessions = unsupported("session")

/**
 * A driver that runs completions; all else is optional. By default it needs no credential and keeps no sessions, so it has
 * one account of its own when none is configured.
 */
export const makeDriver = (driver: Pick<Driver, "complete"> & Partial<Driver>): Driver => ({
  name: "custom",
  capabilities: { login: false, sessions: false, anonymous: true, sampling: false },
  models: [],
  login: () => unsupported("login"),
  verify: () => Effect.void,
  createSession: () => noSessions,
  listSessions: () => noSessions,
  deleteSession: () => noSessions,
  deleteAllSessions: () => noSessions,
  ...driver
})

/** An upstream that is always this driver, whatever the configuration says. */
export const fixedUpstream = (driver: Driver): Layer.Layer<Upstream> =>
  Layer.succeed(Upstream, { driver: Effect.succeed(driver) })
