/**
 * The inputs of embeddings and their limits, for all styles.
 */
import { estimateTokens } from "../../../domain/estimateTokens.ts"
import { type GatewayError, invalidRequest } from "../../../domain/GatewayError.ts"
import type { Limits } from "../../../domain/limits.ts"
import { type Cooperative, Slice } from "../../../domain/stream/cooperative.ts"

/** One input: a text, or its token ids. */
export type Input = string | ReadonlyArray<number>

/** Characters that one token id counts as. */
export const charsPerToken = 4

/** Characters or tokens that are processed without a yield. */
export const pieceSize = 64 * 1024

/** The size of a request, and the style's names of its fields. */
export interface InputsSize {
  readonly count: number
  /** Characters of all inputs; a token counts as `charsPerToken`. */
  readonly chars: number
  readonly dimensions: number
  readonly fields: { readonly inputs: string; readonly dimensions: string }
}

/** The error of the first limit that the inputs exceed, which names the field; `undefined` within the limits. */
export const inputsFault = ({ chars, count, dimensions, fields }: InputsSize, limits: Limits) => {
  const at = (field: string, message: string): GatewayError => invalidRequest(`${field}: ${message}`, field)
  if (count > limits.embedding_inputs) {
    return at(fields.inputs, `has ${count} elements; at most ${limits.embedding_inputs} are allowed`)
  }
  if (chars > limits.embedding_chars) {
    return at(
      fields.inputs,
      `is ${chars} characters long, a token counted as ${charsPerToken}; at most ${limits.embedding_chars} are allowed`
    )
  }
  return count * dimensions > limits.embedding_numbers
    ? at(fields.dimensions, `inputs times dimensions must be at most ${limits.embedding_numbers}`)
    : undefined
}

/** The number of tokens of all inputs, estimated for texts. */
export function* inputTokens(inputs: ReadonlyArray<Input>): Cooperative<number> {
  const slice = new Slice()
  let tokens = 0
  for (const input of inputs) {
    for (let from = 0; from < input.length; from += pieceSize) {
      const piece = input.slice(from, from + pieceSize)
      tokens += typeof piece === "string" ? estimateTokens(piece) : piece.length
      if (slice.add(1, piece.length)) yield slice.end()
    }
  }
  return tokens
}
