/**
 * A scripted server of clouds: Bedrock, Vertex AI and Azure OpenAI at one socket, told apart by their paths.
 *
 * It checks signatures, tokens with their audiences, paths and bodies as the vendors' documents say them, and refuses wrong ones in the
 * vendors' words. It may have another clock. What a right request gets is the test's.
 */
import { type Answer, json, type SeenRequest, startOpenAiServer } from "../openAiSocket.ts"
import { framesOf } from "./eventFrames.ts"
import { type KnownKey, refusalOf } from "./signature.ts"

/** Whom a bearer token is for. */
export interface KnownToken {
  readonly audience: "bedrock" | "google" | "azure"
  readonly isExpired: boolean
}

/** A right request. */
export interface CloudRequest {
  /** The server's name of the model. */
  readonly model: string
  readonly isStream: boolean
  readonly seen: SeenRequest
}

/** What a cloud server knows. */
export interface CloudOptions {
  readonly region: string
  readonly project: string
  readonly keys: ReadonlyMap<string, KnownKey>
  /** What a bearer token, or a key of Azure, is; `undefined` for an unknown one. */
  readonly tokenOf: (token: string) => KnownToken | undefined
  /** The models that it serves. */
  readonly models: ReadonlyArray<string>
}

/** A running server. */
export interface CloudServer {
  /** Scheme, host and port. */
  readonly url: string
  /** Milliseconds by which its clock is ahead. */
  skew: number
  readonly requests: ReadonlyArray<SeenRequest>
  /** Sets what right requests get from now on, and forgets the requests so far. */
  readonly answer: (reply: (request: CloudRequest) => Answer) => void
  readonly stop: () => Promise<void>
}

type Words = (status: number, code: string, message: string) => Answer

const ofAws: Words = (status, code, message) =>
  json(status, { message }, { "x-amzn-errortype": `${code}:http://internal/` })

const ofGoogle: Words = (status, code, message) =>
  json(status, {
    error: {
      code: status,
      message,
      status: code,
      ...(status === 401
        ? { details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "ACCESS_TOKEN_EXPIRED" }] }
        : {})
    }
  })

const ofAzure: Words = (_, code, message) => json(Number(code) || 404, { error: { code, message } })

/** A request at a path of a server, or what is wrong with it. */
type Checked = { readonly refused: Answer } | { readonly model: string; readonly isStream: boolean }

const refused = (refused: Answer): Checked => ({ refused })

const bearerOf = ({ headers }: SeenRequest): string => headers.authorization?.replace(/^Bearer /, "") ?? ""

/** Starts a server on a free port. */
export const startCloudServer = async (options: CloudOptions): Promise<CloudServer> => {
  const { keys, models, project, region, tokenOf } = options
  const now = () => Date.now() + server.skew

  /** Why AWS refuses a request at a service; `undefined` for a right signature or a right key of Bedrock. */
  const awsRefusal = (seen: SeenRequest, service: string): Answer | undefined => {
    const key = bearerOf(seen) || String(seen.headers["x-api-key"] ?? "")
    if (!key.startsWith("AWS4-") && key !== "") {
      const token = tokenOf(key)
      return token?.audience === "bedrock" && !token.isExpired
        ? undefined
        : ofAws(403, "AccessDeniedException", "Invalid API Key format: Must start with pre-defined prefix")
    }
    const refusal = refusalOf(seen, { keys, region, service, now: now() })
    return refusal && ofAws(403, refusal.code, refusal.message)
  }

  /** Bedrock in the APIs of other vendors, whose model is in the body. */
  const compatible = (seen: SeenRequest, service: string): Checked => {
    const refusal = awsRefusal(seen, service)
    if (refusal !== undefined) return { refused: refusal }
    const model = String(seen.body["model"])
    if (!models.includes(model)) {
      const message = `The model '${model}' does not exist`
      return refused(
        json(404, { error: { code: "model_not_found", message, param: "model", type: "invalid_request_error" } })
      )
    }
    if (seen.path === "/anthropic/v1/messages" && seen.headers["anthropic-version"] !== "2023-06-01") {
      return refused(
        json(400, { error: { type: "invalid_request_error", message: "anthropic-version: header is required" } })
      )
    }
    return { model, isStream: seen.body["stream"] === true }
  }

  const invoke = (seen: SeenRequest, encoded: string, isStream: boolean): Checked => {
    const refusal = awsRefusal(seen, "bedrock")
    if (refusal !== undefined) return { refused: refusal }
    const invalid = (message: string) => refused(ofAws(400, "ValidationException", message))
    const model = decodeURIComponent(encoded)
    if (!models.includes(model)) return invalid("The provided model identifier is invalid.")
    const { body } = seen
    if (body["anthropic_version"] !== "bedrock-2023-05-31") return invalid("anthropic_version: Field required")
    const extra = ["model", "stream"].find((name) => Object.hasOwn(body, name))
    return extra === undefined ? { model, isStream } : invalid(
      `Malformed input request: #: extraneous key [${extra}] is not permitted, please reformat your input and try again.`
    )
  }

  const vertex = (seen: SeenRequest, [, at, location, publisher, named, method]: ReadonlyArray<string>): Checked => {
    const token = tokenOf(bearerOf(seen))
    if (token?.audience !== "google" || token.isExpired) {
      const message =
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid " +
        "authentication credential."
      return refused(ofGoogle(401, "UNAUTHENTICATED", message))
    }
    if (at !== project || location !== region) {
      const message =
        `Permission 'aiplatform.endpoints.predict' denied on resource '//aiplatform.googleapis.com/projects/${at}' (or it may not exist).`
      return refused(ofGoogle(403, "PERMISSION_DENIED", message))
    }
    const invalid = (message: string) => refused(ofGoogle(400, "INVALID_ARGUMENT", message))
    const { body } = seen
    const isCount = named === "count-tokens"
    const model = isCount ? String(body["model"]) : decodeURIComponent(named!)
    if (!models.includes(model)) {
      return refused(
        ofGoogle(404, "NOT_FOUND", `Publisher Model \`publishers/${publisher}/models/${model}\` was not found.`)
      )
    }
    if (publisher === "anthropic") {
      if (body["anthropic_version"] !== "vertex-2023-10-16") return invalid("anthropic_version: Field required")
      if (!isCount && Object.hasOwn(body, "model")) return invalid("model: Extra inputs are not permitted")
      const isStream = method === "streamRawPredict"
      return !isCount && (body["stream"] === true) !== isStream
        ? invalid("stream: does not fit the method")
        : { model, isStream }
    }
    if (Object.hasOwn(body, "generateContentRequest")) {
      return invalid("Invalid JSON payload received. Unknown name \"generateContentRequest\": Cannot find field.")
    }
    return { model, isStream: method?.startsWith("stream") === true }
  }

  const azure = (seen: SeenRequest): Checked => {
    const key = seen.headers["api-key"]
    const token = tokenOf(key === undefined ? bearerOf(seen) : String(key))
    if (token?.audience !== "azure" || token.isExpired) {
      return refused(json(401, {
        error: {
          code: key === undefined ? "Unauthorized" : "401",
          message: key === undefined
            ? "Access token is missing, invalid, audience is incorrect (https://cognitiveservices.azure.com), or have expired."
            : "Access denied due to invalid subscription key or wrong API endpoint."
        }
      }))
    }
    const model = String(seen.body["model"])
    return models.includes(model)
      ? { model, isStream: seen.body["stream"] === true }
      : refused(ofAzure(404, "DeploymentNotFound", "The API deployment for this resource does not exist."))
  }

  /** Bedrock and Azure have one path in common: their credentials differ. */
  const isOfBedrock = (seen: SeenRequest): boolean =>
    seen.headers.authorization?.startsWith("AWS4-") === true || tokenOf(bearerOf(seen))?.audience === "bedrock"

  const checked = (seen: SeenRequest): Checked => {
    const path = seen.path.split("?", 1)[0]!
    const runtime = /^\/model\/([^/]+)\/invoke(-with-response-stream)?$/.exec(path)
    if (runtime !== null) return invoke(seen, runtime[1]!, runtime[2] !== undefined)
    const predicted = /^\/v1\/projects\/([^/]+)\/locations\/([^/]+)\/publishers\/([^/]+)\/models\/([^/:]+):(\w+)$/.exec(
      path
    )
    if (predicted !== null) return vertex(seen, predicted)
    if (/^\/(?:v1\/(?:chat\/completions|responses)|anthropic\/v1\/messages)$/.test(path)) {
      return compatible(seen, "bedrock-mantle")
    }
    if (/^\/openai\/v1\/(?:chat\/completions|responses)$/.test(path)) {
      return isOfBedrock(seen) ? compatible(seen, "bedrock") : azure(seen)
    }
    return refused(json(404, { message: "Not Found" }))
  }

  const socket = await startOpenAiServer()
  /** An answer by the server's clock. */
  const dated = (answer: Answer): Answer => ({
    ...answer,
    headers: { ...answer.headers, date: new Date(now()).toUTCString() }
  })
  const server: CloudServer = {
    url: socket.baseUrl.replace(/\/v1$/, ""),
    skew: 0,
    get requests() {
      return socket.requests
    },
    answer: (reply) =>
      socket.answer((seen) => {
        const request = checked(seen)
        if ("refused" in request) return dated(request.refused)
        const answer = reply({ ...request, seen })
        const isFramed = seen.path.endsWith("-with-response-stream") && (answer.status ?? 200) === 200
        return dated(
          isFramed
            ? {
              ...answer,
              headers: { "content-type": "application/vnd.amazon.eventstream" },
              pieces: (answer.pieces ?? []).map((piece) => typeof piece === "string" ? framesOf(piece) : piece)
            }
            : answer
        )
      }),
    stop: socket.stop
  }
  return server
}
