/**
 * The inputs of an embeddings request: texts, or texts that come as token ids.
 */
import * as Result from "effect/Result"
import type { GatewayError } from "../../domain/GatewayError.ts"
import { invalidRequest } from "../../domain/GatewayError.ts"

/** One input: a text, or its token ids. */
export type Input = string | ReadonlyArray<number>

/** Inputs that one request may have, as at the vendor's. */
export const mostInputs = 2048

const at = (field: string, message: string) => Result.fail(invalidRequest(`${field}: ${message}`, field))

const isToken = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

const tokenIds = (
  values: ReadonlyArray<unknown>,
  field: string
): Result.Result<ReadonlyArray<number>, GatewayError> => {
  const bad = values.findIndex((value) => !isToken(value))
  return bad === -1 ? Result.succeed(values.filter(isToken)) : at(`${field}[${bad}]`, "Expected a token id")
}

const oneInput = (value: unknown, field: string): Result.Result<Input, GatewayError> => {
  if (value === "" || (Array.isArray(value) && value.length === 0)) return at(field, "must not be empty")
  if (typeof value === "string") return Result.succeed(value)
  return Array.isArray(value) ? tokenIds(value, field) : at(field, "Expected string | array of token ids")
}

/** The inputs in order. Fails at the first element that is none, naming it. */
export const decodeInputs = (
  input: string | ReadonlyArray<unknown>
): Result.Result<ReadonlyArray<Input>, GatewayError> => {
  if (typeof input === "string" || input.length === 0 || typeof input[0] === "number") {
    return Result.map(oneInput(input, "input"), (one) => [one])
  }
  if (input.length > mostInputs) return at("input", `must have at most ${mostInputs} elements`)
  const inputs: Array<Input> = []
  for (const [i, value] of input.entries()) {
    const one = oneInput(value, `input[${i}]`)
    if (Result.isFailure(one)) return Result.fail(one.failure)
    inputs.push(one.success)
  }
  return Result.succeed(inputs)
}
