/**
 * The part of the environment that the admin API reads: the hosting platform, and the address of the release server. A
 * reference with empty defaults, so that an embedder need not provide it.
 */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import { Environment } from "../config/Environment.ts"

export const AdminEnvironment = Context.Reference<Pick<Environment["Service"], "hosting" | "releasesUrl">>(
  "model-gateway/admin/AdminEnvironment",
  {
    defaultValue: () => ({
      hosting: { token: undefined, projectId: undefined, teamId: undefined, apiUrl: undefined },
      releasesUrl: undefined
    })
  }
)

/** Reads it from the environment of the process. */
export const layerAdminEnvironment: Layer.Layer<never, never, Environment> = Layer.effect(AdminEnvironment, Environment)
