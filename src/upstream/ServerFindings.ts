/**
 * What reading a server's list of models shows: that it does not answer, or that it lacks models which the configuration names.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ConfiguredModel, UpstreamConfig } from "../config/GatewayConfig.ts"
import { causeClass } from "../domain/FailureCause.ts"
import { normalizeModelName } from "../domain/models.ts"
import { nearest } from "../domain/nearest.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { placeOfUpstream } from "../domain/upstreamNames.ts"

/** A finding: a sentence for operators, without an address or a credential. The server does not answer, for a reason, or lacks a model. */
export type ServerFinding =
  & { readonly upstream: string; readonly message: string }
  & ({ readonly kind: "away"; readonly reason: string } | { readonly kind: "missing" })

/** A server that does not answer: why, and since when in Unix milliseconds. */
export interface Away {
  readonly reason: string
  readonly since: number
}

/** The findings of all upstreams in effect. */
export class ServerFindings extends Context.Service<ServerFindings, {
  /** In the order of the configuration; empty while all servers answer and have the models that the configuration names. */
  readonly now: () => ReadonlyArray<ServerFinding>
  /** The servers that do not answer, by upstream. */
  readonly away: () => ReadonlyMap<string, Away>
  /**
   * Reads the list again of the server whose names callers may use, because one of them is unknown: a model may be new there. Waits for the
   * list for two seconds at most. Without effect within five seconds of the last reading.
   */
  readonly readAgain: Effect.Effect<void>
}>()("model-gateway/upstream/ServerFindings") {}

/** The most findings of one upstream, so that a wrong address of many models is no flood. */
const mostOfOne = 8

/** The most names that are suggested for a missing one. */
const mostSuggested = 3

const reasonOf = ({ cause, kind }: UpstreamFailure): string =>
  kind === "timeout" ? "it is silent" : causeClass(cause) ?? "the connection failed"

/** The finding of a failed read; a server that refuses to list its models answers all the same. */
export const notAnswering = (upstream: string, failure: UpstreamFailure): ReadonlyArray<ServerFinding> => {
  if (failure.kind !== "transport" && failure.kind !== "timeout") return []
  const reason = reasonOf(failure)
  return [{ upstream, kind: "away", reason, message: `upstream ${upstream} does not answer: ${reason}` }]
}

/** The models of the configuration that a list lacks. Without a tag, a name means `latest`. An empty list names nothing. */
export const missingModels = (
  { models, name }: Pick<UpstreamConfig, "models" | "name">,
  listed: ReadonlyArray<string>
): ReadonlyArray<ServerFinding> => {
  if (listed.length === 0) return []
  const known = new Set(listed.map(normalizeModelName))
  const isKnown = ({ model }: ConfiguredModel) =>
    known.has(normalizeModelName(model)) || known.has(`${normalizeModelName(model)}:latest`)
  return models.filter((each) => !isKnown(each)).slice(0, mostOfOne).map(({ id, model }) => {
    const near = nearest(model, listed, mostSuggested).map((each) => `"${each}"`)
    const hint = near.length === 0 ? "" : `; did you mean ${near.join(" or ")}?`
    return {
      upstream: name,
      kind: "missing",
      message: `${placeOfUpstream(name)}.models.${id} names "${model}", which the server does not list${hint}`
    }
  })
}
