/**
 * Decodes the inputs of an embeddings request: texts, or lists of token ids.
 */
import * as Result from "effect/Result"
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import type { Limits } from "../../domain/limits.ts"
import { type Cooperative, Slice } from "../../domain/stream/cooperative.ts"
import { charsPerToken, type Input, inputsFault } from "../shared/embeddings/inputs.ts"

const at = (field: string, message: string) => Result.fail(invalidRequest(`${field}: ${message}`, field))

const isToken = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

const charsOf = (value: unknown): number =>
  typeof value === "string" ? value.length : Array.isArray(value) ? value.length * charsPerToken : 0

function* tokenIds(
  values: ReadonlyArray<unknown>,
  field: string,
  slice: Slice
): Cooperative<Result.Result<ReadonlyArray<number>, GatewayError>> {
  const tokens: Array<number> = []
  for (const [i, value] of values.entries()) {
    if (slice.add(1)) yield slice.end()
    if (!isToken(value)) return at(`${field}[${i}]`, "must be a token id")
    tokens.push(value)
  }
  return Result.succeed(tokens)
}

function* oneInput(value: unknown, field: string, slice: Slice): Cooperative<Result.Result<Input, GatewayError>> {
  if (slice.add(1)) yield slice.end()
  if (value === "" || (Array.isArray(value) && value.length === 0)) return at(field, "must not be empty")
  if (typeof value === "string") return Result.succeed(value)
  return Array.isArray(value)
    ? yield* tokenIds(value, field, slice)
    : at(field, "must be a string or an array of token ids")
}

const fields = { inputs: "input", dimensions: "dimensions" }

/** Decodes the inputs in order. Fails with the first exceeded limit or invalid element, which the error names. */
export function* decodeInputs(
  input: string | ReadonlyArray<unknown>,
  dimensions: number,
  limits: Limits
): Cooperative<Result.Result<ReadonlyArray<Input>, GatewayError>> {
  const slice = new Slice()
  const isOne = typeof input === "string" || input.length === 0 || typeof input[0] === "number"
  const values: ReadonlyArray<unknown> = isOne ? [input] : input
  let chars = 0
  for (const value of values.length > limits.embedding_inputs ? [] : values) {
    if (slice.add(1)) yield slice.end()
    chars += charsOf(value)
  }
  const fault = inputsFault({ count: values.length, chars, dimensions, fields }, limits)
  if (fault !== undefined) return Result.fail(fault)
  const inputs: Array<Input> = []
  for (const [i, value] of values.entries()) {
    const one = yield* oneInput(value, isOne ? "input" : `input[${i}]`, slice)
    if (Result.isFailure(one)) return Result.fail(one.failure)
    const [first] = inputs
    if (first !== undefined && typeof first !== typeof one.success) {
      return at(
        `input[${i}]`,
        `must be ${typeof first === "string" ? "a string" : "an array of token ids"}, as input[0] is`
      )
    }
    inputs.push(one.success)
  }
  return Result.succeed(inputs)
}
