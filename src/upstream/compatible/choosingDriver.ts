/** The driver of a server with both contracts, of which one serves each request. */
import * as Effect from "effect/Effect"
import { monotonicMillis } from "../../domain/time.ts"
import type { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import { noCounts } from "../server/serverDriver.ts"
import type { CompletionRequest, Driver, SpeaksContracts } from "../Upstream.ts"
import type { ContractChoice, Serving } from "./ContractChoice.ts"

/** Makes the driver from those of the two contracts. `readList` reads the JSON of the server's list of models, which says what a model has. */
export const choosingDriver = (
  choice: ContractChoice,
  drivers: { readonly [Contract in Serving]: Driver },
  readList: (token: string | undefined) => Effect.Effect<unknown, UpstreamFailure>
): Driver => {
  const { responses } = drivers
  const served = choice.isAuto
    ? {
      ...drivers,
      // Learns from a refusal that the server has no such endpoint.
      responses: {
        ...responses,
        complete: (request: CompletionRequest) => choice.responses.watching(responses.complete(request))
      }
    }
    : drivers
  const choose: SpeaksContracts["choose"] = (model, conversation, now) =>
    served[choice.contractOf(model, conversation, now)]
  const chosenFor = ({ conversation, model }: Pick<CompletionRequest, "conversation" | "model">) =>
    Effect.clockWith((clock) => Effect.succeed(choose(model, conversation, monotonicMillis(clock))))
  const usual = drivers[choice.usual]
  return {
    ...usual,
    complete: (request) => Effect.flatMap(chosenFor(request), (driver) => driver.complete(request)),
    capabilities: {
      ...usual.capabilities,
      seals: responses.capabilities.seals,
      compaction: responses.capabilities.compaction,
      contracts: {
        all: Object.keys(drivers) as ReadonlyArray<Serving>,
        choose,
        prepare: (token, now) => choice.isAuto ? choice.read(readList(token), now) : Effect.void
      },
      countTokens: (request) =>
        Effect.flatMap(
          chosenFor(request),
          (driver) => driver.capabilities.countTokens?.(request) ?? Effect.fail(noCounts)
        )
    }
  }
}
