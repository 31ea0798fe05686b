/**
 * What an OpenAI-compatible server says beyond text and calls, in the words of this style.
 */
import type { JsonFields } from "../../domain/json.ts"
import { tokensIn } from "../shared/serverExtras.ts"

type Tokens = ReturnType<typeof tokensIn>

const candidate = ({ logprob, token }: Tokens[number]["top_logprobs"][number]) => ({ token, logProbability: logprob })

/** Log probabilities as the candidate's `logprobsResult`, with the other candidates of each step if the server names any. */
const logprobsResult = (tokens: Tokens): JsonFields => {
  const hasOthers = tokens.some(({ top_logprobs: others }) => others.length > 0)
  return {
    chosenCandidates: tokens.map(candidate),
    ...(hasOthers
      ? { topCandidates: tokens.map(({ top_logprobs: others }) => ({ candidates: others.map(candidate) })) }
      : {})
  }
}

/** Fields of a choice as those of a candidate. `null` withdraws what was said before. */
export const candidateFields = (choice: JsonFields): JsonFields => {
  if (choice["logprobs"] === null) return { logprobsResult: null }
  const tokens = tokensIn(choice)
  return tokens.length === 0 ? {} : { logprobsResult: logprobsResult(tokens) }
}
