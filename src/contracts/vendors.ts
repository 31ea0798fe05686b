/**
 * The servers of vendors that have addresses of their own: what of a contract such a server has elsewhere or otherwise.
 *
 * The one thing to know: a contract stays as it is. These facts change where it is asked, and the few fields that move with that.
 */
import type { CloudName, clouds, PlaceField } from "./names.ts"
import { changedMembers } from "./shared/editedBody.ts"

/** Where a vendor's server is: what operators say of it; empty for what the vendor does not need. */
export type VendorPlace = Readonly<Record<PlaceField, string>>

/** A request as the contract says it, or as a server gets it. */
export interface Asked {
  /** Below the base URL, with its query. */
  readonly path: string
  readonly body: string
  readonly headers: { readonly [name: string]: string } | undefined
}

/** What is known of a request beside itself. */
interface AskedOf {
  /** The server's name of the model. */
  readonly model: string
  readonly isWhole: boolean
}

/** What a driver can do of which a server lacks the endpoint. */
export type Lacking = "countTokens" | "embed" | "listModels" | "relay"

/** What a server has otherwise than its contract says. */
export interface ServerFacts {
  /** Scheme and host, in place of which an operator may say another one. */
  readonly origin: string
  /** What is between that and the paths of the contract. */
  readonly base: string
  /** The service and region of signatures; `undefined` where a header has the credential. */
  readonly signing: { readonly service: string; readonly region: string } | undefined
  /** The header that has a key as it stands; `undefined` for the contract's. */
  readonly keyHeader: string | undefined
  /** A key is a bearer token, whatever the contract has. */
  readonly isBearer: boolean
  /** Where a completion is asked for; `undefined` for the contract's own path. */
  readonly address: ((asked: Asked, of: AskedOf) => Asked) | undefined
  /** The same for a count of tokens. */
  readonly count: ((asked: Asked) => Asked) | undefined
  readonly lacks: ReadonlyArray<Lacking>
}

/** A server that has everything as its contract says. */
const asContracted = {
  signing: undefined,
  keyHeader: undefined,
  isBearer: false,
  address: undefined,
  count: undefined,
  lacks: []
} as const satisfies Partial<ServerFacts>

/** Claude's Messages by `InvokeModel`: the model is in the path, the version in the body, and a stream is another endpoint. */
const invokeModel: ServerFacts["address"] = ({ body, headers = {} }, { isWhole, model }) => {
  const { "anthropic-beta": betas, ...rest } = headers
  return {
    path: `/model/${encodeURIComponent(model)}/invoke${isWhole ? "" : "-with-response-stream"}`,
    body: changedMembers(body, ["model", "stream"], {
      anthropic_version: "bedrock-2023-05-31",
      ...(betas === undefined ? {} : { anthropic_beta: betas.split(",").map((beta) => beta.trim()) })
    }),
    headers: { ...rest, accept: isWhole ? "application/json" : "application/vnd.amazon.eventstream" }
  }
}

/** Claude's Messages at Vertex AI: the model is in the path, and the version in the body. */
const vertexVersion = { anthropic_version: "vertex-2023-10-16" }

const rawPredict: ServerFacts["address"] = ({ body, headers }, { isWhole, model }) => ({
  path: `/models/${encodeURIComponent(model).replaceAll("%40", "@")}:${isWhole ? "rawPredict" : "streamRawPredict"}`,
  body: changedMembers(body, ["model"], vertexVersion),
  headers
})

/** Vertex AI counts what the request itself says, without the envelope of the Gemini API. */
const ownCount: ServerFacts["count"] = ({ body, headers, path }) => ({
  path,
  body: changedMembers(body.slice("{\"generateContentRequest\":".length, -1), ["model"], {}),
  headers
})

const mantle = (base: string, lacks: ServerFacts["lacks"]) => ({ region }: VendorPlace): ServerFacts => ({
  ...asContracted,
  origin: `https://bedrock-mantle.${region}.api.aws`,
  base,
  signing: { service: "bedrock-mantle", region },
  lacks
})

const runtime = ({ region }: VendorPlace) => ({
  ...asContracted,
  origin: `https://bedrock-runtime.${region}.amazonaws.com`,
  signing: { service: "bedrock", region },
  isBearer: true
})

const openaiRuntime = (place: VendorPlace): ServerFacts => ({
  ...runtime(place),
  base: "/openai/v1",
  lacks: ["embed", "listModels", "relay"]
})

/** The host of Vertex AI in a region: `global` and the regions of several countries have their own. */
const vertexOrigin = (region: string): string =>
  region === "global"
    ? "https://aiplatform.googleapis.com"
    : region === "us" || region === "eu"
    ? `https://aiplatform.${region}.rep.googleapis.com`
    : `https://${region}-aiplatform.googleapis.com`

const vertex = (publisher: string, { project, region }: VendorPlace) => ({
  ...asContracted,
  origin: vertexOrigin(region),
  base: `/v1/projects/${encodeURIComponent(project)}/locations/${region}/publishers/${publisher}`
})

const azure = ({ resource }: VendorPlace): ServerFacts => ({
  ...asContracted,
  origin: `https://${resource}.openai.azure.com`,
  base: "/openai/v1",
  keyHeader: "api-key"
})

/** The server of each driver that a vendor has servers of. */
const vendors: {
  readonly [Name in CloudName]: {
    readonly [Driver in typeof clouds[Name]["drivers"][number]]: (place: VendorPlace) => ServerFacts
  }
} = {
  bedrock: {
    openai: mantle("/v1", ["embed", "relay"]),
    responses: mantle("/v1", ["embed", "relay"]),
    messages: mantle("/anthropic", ["listModels"])
  },
  "bedrock-runtime": {
    openai: openaiRuntime,
    responses: openaiRuntime,
    messages: (place) => ({
      ...runtime(place),
      base: "",
      address: invokeModel,
      lacks: ["countTokens", "listModels"]
    })
  },
  vertex: {
    generate: (place) => ({
      ...vertex("google", place),
      count: ownCount,
      lacks: ["embed", "listModels"]
    }),
    messages: (place) => ({
      ...vertex("anthropic", place),
      isBearer: true,
      address: rawPredict,
      count: ({ body, headers }) => ({
        path: "/models/count-tokens:rawPredict",
        body: changedMembers(body, [], vertexVersion),
        headers
      }),
      lacks: ["listModels"]
    })
  },
  azure: { openai: azure, responses: azure }
}

/** The facts of a vendor's server; `undefined` for a driver that it has no server of. */
export const serverFacts = (name: CloudName, driver: string, place: VendorPlace): ServerFacts | undefined => {
  const servers: { readonly [driver: string]: (place: VendorPlace) => ServerFacts } = vendors[name]
  return Object.hasOwn(servers, driver) ? servers[driver]?.(place) : undefined
}
