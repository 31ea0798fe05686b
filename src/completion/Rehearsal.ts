/**
 * A rehearsed request: some of its targets fail as if they had no connection, for this request alone. Nothing is sent to them, and their
 * health, cooling, quotas and usage do not see it.
 */
import { type Classification, classify } from "../domain/classifyUpstreamFailure.ts"
import { type FailureContext, plainContext } from "../domain/failureRules.ts"
import { type GatewayError, invalidRequest } from "../domain/GatewayError.ts"
import { type Target, targetName } from "../domain/routes.ts"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"

/** The header by which a request is rehearsed, in lower case. */
export const rehearsalHeader = "x-gateway-rehearsal"

export interface Rehearsal {
  /** The id of the route that the request asks for. */
  readonly route: string
  /** The targets that fail, each `upstream/model`. */
  readonly without: ReadonlySet<string>
}

/** The failure of a rehearsed target of the upstream. It is final, so that each of them fails once. */
export const rehearsedFailure = (naming: Pick<FailureContext, "hasKey" | "only" | "upstream">): Classification => ({
  ...classify(new UpstreamFailure({ phase: "completion", kind: "transport", cause: { code: "ECONNREFUSED" } }), {
    ...plainContext,
    ...naming
  }),
  retry: "no"
})

/** Whether a target fails in a rehearsal. */
export const isRehearsed = (rehearsal: Rehearsal, target: Target | undefined): boolean =>
  target !== undefined && rehearsal.without.has(targetName(target))

/** The refusal of a token that is for another route. */
export const otherRoute = ({ route }: Rehearsal, asked: string): GatewayError =>
  invalidRequest(
    `The token in X-Gateway-Rehearsal is for the route "${route}", and the request goes to "${asked}"`,
    rehearsalHeader
  )
