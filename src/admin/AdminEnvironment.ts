/**
 * What the admin API takes from the environment: the hosting platform, and where releases are published.
 *
 * A reference, so that whoever embeds the gateway needs none of it; by default there is neither.
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

/** Taken from the environment of the process. */
export const layerAdminEnvironment: Layer.Layer<never, never, Environment> = Layer.effect(AdminEnvironment, Environment)
