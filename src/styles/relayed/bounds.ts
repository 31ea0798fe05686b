/**
 * The most that a relayed request can use, which strict limits of keys reserve.
 */
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { isRecord } from "../../domain/json.ts"
import type { Route } from "../../domain/routes.ts"
import { parseJson } from "../../upstream/json.ts"
import { type Bound, withMargin } from "../../usage/keyRules.ts"
import type { RelayedEndpoint } from "./endpoints.ts"

const countIn = (value: unknown, least: number): number =>
  typeof value === "number" && Number.isFinite(value) ? Math.max(least, Math.ceil(value)) : least

/** The documents of one search unit. */
const documentsOfQuery = 100

/** The bounds of a request, whose body is `text`, or the error of one that has none. */
export const relayedBounds = (
  endpoint: RelayedEndpoint,
  text: string,
  promptTokens: number,
  { id, targets }: Route
): ReadonlyArray<Bound> | GatewayError => {
  // The text is a request within the limits.
  const sent = parseJson(text, Infinity)
  const body = isRecord(sent) ? sent : {}
  const { best_of, documents, max_tokens, n, prompt } = body
  let completionTokens = 0
  if (endpoint.bound === "choices") {
    if (typeof max_tokens !== "number") {
      return invalidRequest(
        "max_tokens: a strict limit or budget applies, which reserves the most that a reply can have; set the field",
        "max_tokens"
      )
    }
    const isList = Array.isArray(prompt) && prompt.some((each) => typeof each !== "number")
    const choices = Math.max(countIn(n, 1), countIn(best_of, 1)) * (isList ? Math.max(1, prompt.length) : 1)
    completionTokens = countIn(max_tokens, 0) * choices
  } else if (endpoint.bound === undefined) {
    return invalidRequest(
      `model: a strict limit or budget applies, and nothing bounds what "${id}" makes at this endpoint`,
      "model"
    )
  }
  const per_query = Math.max(1, Math.ceil(Array.isArray(documents) ? documents.length / documentsOfQuery : 1))
  const most = { promptTokens: withMargin(promptTokens), completionTokens, pieces: { per_query } }
  return targets.map((target) => ({ target, most, tries: 1 }))
}
