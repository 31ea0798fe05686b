/** The tables by which the bodies of requests are read: those of all contracts, and of embeddings. */
import { contracts } from "../contracts/contracts.ts"
import type { Family } from "../contracts/shared/Family.ts"
import { embeddingsFamily } from "./embeddings/Handlers.ts"
import { embedFamily } from "./generate/readRequest.ts"

const { openai, ...others } = contracts

export const families: ReadonlyArray<Family> = [
  openai.request,
  embeddingsFamily,
  ...Object.values(others).map(({ request }) => request),
  embedFamily
]
