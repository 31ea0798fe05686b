/**
 * Which credentials for the hosting platform count: what the request gives, then the environment, then what was saved.
 */
import * as Redacted from "effect/Redacted"
import type { HostEnvironment } from "../../config/Environment.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"

type Saved = GatewayConfig["host"]

/** Stands in a request for "what you have". */
const preconfigured = "__USE_PRECONFIG__"

/** What a request gives; empty fields and the placeholder give nothing. */
export interface GivenCredentials {
  readonly host_token?: string | null | undefined
  readonly project_id?: string | null | undefined
  readonly team_id?: string | null | undefined
}

/** What there is to call the platform with. */
export interface KnownCredentials {
  readonly token: Redacted.Redacted<string> | undefined
  readonly projectId: string | undefined
  readonly teamId: string | undefined
}

const textOf = (text: string | null | undefined): string | undefined => {
  const trimmed = text?.trim()
  return trimmed === "" || trimmed === preconfigured ? undefined : trimmed
}

const savedToken = ({ token }: Saved) => token !== undefined && Redacted.value(token) !== "" ? token : undefined

/** The fields that a request gives itself, by the names of the configuration's `host` group. */
export const givenFields = (given: GivenCredentials) => ({
  token: textOf(given.host_token),
  project_id: textOf(given.project_id),
  team_id: textOf(given.team_id)
})

/** Field by field the first source that has one. A saved team belongs to the saved project and goes with no other. */
export const knownCredentials = (
  given: GivenCredentials,
  environment: HostEnvironment,
  saved: Saved
): KnownCredentials => {
  const { project_id, team_id, token } = givenFields(given)
  const projectId = project_id ?? environment.projectId ?? textOf(saved.project_id)
  return {
    token: token === undefined ? environment.token ?? savedToken(saved) : Redacted.make(token),
    projectId,
    teamId: team_id ?? environment.teamId ?? (projectId === saved.project_id ? textOf(saved.team_id) : undefined)
  }
}
