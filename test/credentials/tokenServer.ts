/**
 * A token server for tests, as the documents of its vendors say it: it checks signature, audience, scope, times and secrets, refuses wrong
 * ones in the vendor's words, and may have a wrong clock.
 */
import { jwtVerify } from "jose"
import { createPublicKey, generateKeyPairSync, X509Certificate } from "node:crypto"
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"
import { type KnownKey, refusalOf } from "../../src/testing/clouds/signature.ts"
import { rsaCertificate } from "../support/certificates.ts"

export const { privateKey, publicKey } = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  publicKeyEncoding: { type: "spki", format: "pem" },
  privateKeyEncoding: { type: "pkcs8", format: "pem" }
})

/** The certificate of the client, and its key. */
export const certificate = rsaCertificate()

export const secrets = {
  client: "canary-of-a-client",
  refresh: "canary-of-a-refresh",
  subject: "canary.of.a.subject",
  key: "CANARYOFAKEY",
  signing: "canary/of+a+signing+key"
}

/** The role that the token service lets be assumed. */
export const role = "arn:aws:iam::123456789012:role/gateway"

type Answer = readonly [status: number, body: unknown]

const refused = (error: string, error_description: string): Answer => [400, { error, error_description }]

export interface TokenServer {
  readonly url: string
  /** How far its clock is ahead of this computer's, in milliseconds. */
  skew: number
  /** The access keys of AWS that it knows; those of roles are added as they are assumed. */
  readonly keys: Map<string, KnownKey>
  /** Paths and forms of all requests, the oldest first. */
  readonly seen: Array<
    { readonly path: string; readonly form: URLSearchParams; readonly headers: IncomingMessage["headers"] }
  >
  readonly stop: () => Promise<void>
}

export const startTokenServer = async (): Promise<TokenServer> => {
  const key = createPublicKey(publicKey)
  let issued = 0
  const token = (kind: string): Answer => [200, {
    access_token: `${kind}-token-${++issued}`,
    expires_in: 3_599,
    token_type: "Bearer"
  }]
  const now = () => new Date(Date.now() + server.skew)

  const byAssertion = async (form: URLSearchParams): Promise<Answer> => {
    try {
      const { payload, protectedHeader } = await jwtVerify(form.get("assertion") ?? "", key, {
        audience: `${server.url}/google`,
        issuer: "gateway@project.iam.gserviceaccount.com",
        algorithms: ["RS256"],
        currentDate: now(),
        clockTolerance: 60
      })
      const isFuture = Number(payload.iat) > now().getTime() / 1_000 + 60
      if (isFuture) return refused("invalid_grant", "Invalid JWT: Token must be a short-lived token (60 minutes)")
      if (protectedHeader.kid !== "key-1") return refused("invalid_grant", "Invalid JWT: No valid verifier found")
      return payload["scope"] === "https://www.googleapis.com/auth/cloud-platform"
        ? token("service")
        : refused("invalid_scope", "Invalid OAuth scope or ID token audience provided.")
    } catch {
      return refused("invalid_grant", "Invalid JWT Signature.")
    }
  }

  /** Whether an assertion is of the client, for this server, by its certificate. */
  const isCertified = async (assertion: string): Promise<boolean> => {
    const { fingerprint, publicKey } = new X509Certificate(certificate.cert)
    const url = `${server.url}/tenant-1/oauth2/v2.0/token`
    try {
      const { payload, protectedHeader } = await jwtVerify(assertion, publicKey, {
        audience: url,
        issuer: "client-1",
        subject: "client-1",
        algorithms: ["RS256"],
        currentDate: now()
      })
      const x5t = Buffer.from(fingerprint.replaceAll(":", ""), "hex").toString("base64url")
      return protectedHeader.x5t === x5t && typeof payload.jti === "string"
    } catch {
      return false
    }
  }

  const sts = (path: string, body: string, form: URLSearchParams, headers: IncomingMessage["headers"]): Answer => {
    const xml = (status: number, code: string, message: string): Answer => [
      status,
      `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>${code}</Code>` +
      `<Message>${message}</Message></Error></ErrorResponse>`
    ]
    const action = form.get("Action")
    if (action === "AssumeRoleWithWebIdentity") {
      if (form.get("WebIdentityToken") !== secrets.subject) {
        return xml(400, "InvalidIdentityToken", "Couldn't retrieve verification key from your identity provider")
      }
    } else {
      const refusal = refusalOf({ method: "POST", path, headers, bytes: Buffer.from(body) }, {
        service: "sts",
        region: "eu-central-1",
        keys: server.keys,
        now: now().getTime()
      })
      if (refusal !== undefined) {
        return xml(403, refusal.code === "InvalidSignatureException" ? "SignatureDoesNotMatch" : refusal.code, "no")
      }
    }
    if (form.get("RoleArn") !== role || (form.get("ExternalId") ?? "ours") !== "ours") {
      return xml(403, "AccessDenied", `User is not authorized to perform: sts:${action}`)
    }
    const id = `ASIA${++issued}`
    const session = `session-token-${issued}`
    server.keys.set(id, { secret: `secret-${issued}`, session, isExpired: false })
    return [
      200,
      `<${action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><${action}Result><Credentials>` +
      `<AccessKeyId>${id}</AccessKeyId><SecretAccessKey>secret-${issued}</SecretAccessKey>` +
      `<SessionToken>${session}</SessionToken>` +
      `<Expiration>${new Date(now().getTime() + 3_600_000).toISOString()}</Expiration></Credentials>` +
      `<AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/gateway/${form.get("RoleSessionName")}</Arn>` +
      `</AssumedRoleUser></${action}Result></${action}Response>`
    ]
  }

  /** The keys of a container's or a machine's role, as metadata servers write them. */
  const roleKeys = (): Answer => {
    const id = `ASIA${++issued}`
    server.keys.set(id, { secret: `secret-${issued}`, session: `session-token-${issued}`, isExpired: false })
    return [200, {
      Code: "Success",
      AccessKeyId: id,
      SecretAccessKey: `secret-${issued}`,
      Token: `session-token-${issued}`,
      Expiration: new Date(now().getTime() + 21_600_000).toISOString()
    }]
  }

  const badRequest: Answer = [400, { error: "invalid_request" }]

  /** A token of a managed identity: the one that the client names, or the only one of the computer. */
  const managedToken = (query: URLSearchParams, life: object): Answer => {
    const oid = new Map([[null, "object-1"], ["client-2", "object-2"]]).get(query.get("client_id"))
    if (oid === undefined || query.get("resource") !== "https://cognitiveservices.azure.com") return badRequest
    const claims = Buffer.from(JSON.stringify({ oid })).toString("base64url")
    return [200, { access_token: `e30.${claims}.x`, ...life }]
  }

  const answer = async (
    path: string,
    form: URLSearchParams,
    headers: IncomingMessage["headers"],
    method: string,
    body: string
  ): Promise<Answer> => {
    if (form.has("RoleArn")) return sts(path, body, form, headers)
    const ofMachine = "/latest/meta-data/iam/security-credentials/"
    if (path === "/latest/api/token" && method === "PUT") {
      return headers["x-aws-ec2-metadata-token-ttl-seconds"] === undefined ? [400, ""] : [200, "machine-token"]
    }
    if (path.startsWith(ofMachine)) {
      if (headers["x-aws-ec2-metadata-token"] !== "machine-token") return [401, ""]
      return path === ofMachine ? [200, "gateway-role\n"] : path === `${ofMachine}gateway-role` ? roleKeys() : [404, ""]
    }
    if (path === "/container/keys") return headers.authorization === secrets.client ? roleKeys() : [403, "{}"]
    const { pathname, searchParams } = new URL(path, "http://server")
    switch (`${pathname} ${form.get("grant_type") ?? ""}`) {
      case "/google urn:ietf:params:oauth:grant-type:jwt-bearer":
        return byAssertion(form)
      case "/google refresh_token":
        return form.get("refresh_token") === secrets.refresh && form.get("client_secret") === secrets.client
          ? token("user")
          : refused("invalid_grant", "Bad Request")
      case "/google urn:ietf:params:oauth:grant-type:token-exchange":
        return form.get("subject_token") === secrets.subject && form.get("audience") === "//iam/pool"
          ? token("federated")
          : refused("invalid_request", "Invalid value for subject_token")
      case "/account:generateAccessToken ":
        return headers.authorization?.startsWith("Bearer federated-token-") === true
          ? [200, {
            accessToken: "impersonated-token",
            expireTime: new Date(now().getTime() + 1_800_000).toISOString()
          }]
          : [401, { error: { status: "UNAUTHENTICATED", message: "no" } }]
      case "/subject ":
        return headers["x-own"] === "yes" ? [200, { token: secrets.subject }] : [403, {}]
      case "/computeMetadata/v1/instance/service-accounts/default/token ":
        return headers["metadata-flavor"] === "Google" ? token("machine") : [403, {}]
      case "/computeMetadata/v1/instance/service-accounts/default/email ":
        return [200, "machine@project.iam.gserviceaccount.com"]
      case "/tenant-1/oauth2/v2.0/token client_credentials": {
        const isProven = form.get("client_secret") === secrets.client ||
          (form.get("client_assertion_type")?.endsWith("jwt-bearer") === true && (
            form.get("client_assertion") === secrets.subject || await isCertified(form.get("client_assertion") ?? "")
          ))
        if (form.get("scope") !== "https://cognitiveservices.azure.com/.default") {
          return refused("invalid_scope", "AADSTS70011")
        }
        return isProven ? token("client") : [401, { error: "invalid_client", error_description: "AADSTS7000215" }]
      }
      case "/metadata/identity/oauth2/token ": {
        const isAsked = headers["metadata"] === "true" && searchParams.get("api-version") === "2018-02-01"
        return isAsked ? managedToken(searchParams, { expires_in: "86399", expires_on: "1" }) : badRequest
      }
      case "/msi/token ": {
        if (headers["x-identity-header"] !== secrets.client) return [401, { statusCode: 401, message: "no" }]
        const expires_on = String(Math.floor(now().getTime() / 1_000) + 86_400)
        return searchParams.get("api-version") === "2019-08-01"
          ? managedToken(searchParams, { expires_on })
          : badRequest
      }
      default:
        return [404, { error: "not_found" }]
    }
  }

  const http = createServer((request, response) => {
    void text(request).then(async (body) => {
      const form = new URLSearchParams(body)
      const path = request.url ?? ""
      server.seen.push({ path, form, headers: request.headers })
      const [status, reply] = await answer(path, form, request.headers, request.method ?? "", body)
      response.sendDate = false
      response.writeHead(status, { date: now().toUTCString(), "content-type": "application/json" })
        .end(typeof reply === "string" ? reply : JSON.stringify(reply))
    })
  })
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve))
  const server: TokenServer = {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    skew: 0,
    keys: new Map([[secrets.key, { secret: secrets.signing, session: undefined, isExpired: false }]]),
    seen: [],
    stop: () => new Promise((resolve) => void http.close(() => resolve()))
  }
  return server
}
