/** The driver of the toy contract: `POST {base}/say`. */
import type { Exchanges } from "../../../src/upstream/Exchange.ts"
import { listedModels } from "../../../src/upstream/server/modelList.ts"
import { makeServerClient } from "../../../src/upstream/server/ServerClient.ts"
import { namesOf, serverDriver } from "../../../src/upstream/server/serverDriver.ts"
import { type ServerOptions, settingsOf } from "../../../src/upstream/server/ServerOptions.ts"
import { type Driver, sendsNothing } from "../../../src/upstream/Upstream.ts"
import { toy } from "./contract.ts"
import { toyName } from "./names.ts"

export const makeToyDriver = (exchanges: Exchanges["Service"], options: ServerOptions): Driver => {
  const settings = settingsOf(options)
  const nameOf = namesOf(settings)
  const client = makeServerClient(exchanges, settings, {
    contract: toy,
    headers: {},
    credential: (token) => ({ "x-toy-key": token }),
    versionPrefix: undefined
  })
  return serverDriver(client, settings, { path: "/models", query: "", read: listedModels, ask: undefined }, {
    name: toyName,
    contract: toy.id,
    sends: sendsNothing,
    capabilities: {},
    complete: (request) =>
      client.complete(request, function*({ conversation, isWhole = false, model }) {
        const asked = nameOf(model)
        return {
          model: asked,
          path: "/say",
          body: yield* toy.writeRequest(asked.name, conversation, undefined, isWhole),
          headers: undefined,
          id: crypto.randomUUID(),
          chunks: toy.readReply()
        }
      })
  })
}
