/**
 * The most that a relayed request can use, which strict limits of keys reserve.
 */
import { parseJson } from "../../contracts/shared/json.ts"
import { tokensAlone } from "../../domain/bill.ts"
import { withMargin } from "../../domain/estimateTokens.ts"
import { GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import { outputFault, type OutputFields } from "../../domain/outputFields.ts"
import type { Route } from "../../domain/routes.ts"
import type { Bound } from "../../usage/keyRules.ts"
import type { RelayedEndpoint } from "./endpoints.ts"

/** A positive integer of a body, or the error of a field that servers read in another way. */
const countIn = (body: JsonRecord, name: string): number | GatewayError => {
  const value = body[name]
  return typeof value === "number" && Number.isInteger(value) && value > 0
    ? value
    : invalidRequest(`${name}: a strict limit or budget applies, which needs a positive integer`, name)
}

/** The replies to a request: those that are made are more than those that are sent. A field that is absent or `null` asks for one. */
const choicesOf = (body: JsonRecord): number | GatewayError => {
  let most = 1
  for (const name of ["n", "best_of"]) {
    if (body[name] === undefined || body[name] === null) continue
    const count = countIn(body, name)
    if (count instanceof GatewayError) return count
    most = Math.max(most, count)
  }
  return most
}

/** The documents of one search unit. */
const documentsOfQuery = 100

/** The bounds of a request, whose body is `text`, or the error of one that has none. */
export const relayedBounds = (
  endpoint: RelayedEndpoint,
  text: string,
  promptTokens: number,
  outputs: OutputFields,
  { id, targets }: Route
): ReadonlyArray<Bound> | GatewayError => {
  // The text is a request within the limits.
  const sent = parseJson(text, Infinity)
  const body = isRecord(sent) ? sent : {}
  const { documents, max_tokens: limit, prompt } = body
  let completionTokens = 0
  if (endpoint.bound === "choices") {
    if (limit === undefined || limit === null) {
      return invalidRequest(
        "max_tokens: a strict limit or budget applies, which reserves the most that a reply can have; set the field",
        "max_tokens"
      )
    }
    const isList = Array.isArray(prompt) && prompt.some((each) => typeof each !== "number")
    const most = countIn(body, "max_tokens")
    if (most instanceof GatewayError) return most
    const choices = choicesOf(body)
    if (choices instanceof GatewayError) return choices
    const fault = outputFault(outputs, most, choices)
    if (fault !== undefined) return fault
    completionTokens = most * choices * (isList ? Math.max(1, prompt.length) : 1)
  } else if (endpoint.bound === undefined) {
    return invalidRequest(
      `model: a strict limit or budget applies, and nothing bounds what "${id}" makes at this endpoint`,
      "model"
    )
  }
  const per_query = Math.max(1, Math.ceil(Array.isArray(documents) ? documents.length / documentsOfQuery : 1))
  const most = { ...tokensAlone, promptTokens: withMargin(promptTokens), completionTokens, pieces: { per_query } }
  return targets.map((target) => ({ target, most, tries: 1 }))
}
