/**
 * The TLS of an upstream: its own roots, a client's certificate, and the name that the server's certificate is for.
 *
 * Files are read when the configuration is taken, before it is decoded. A fault names the field and quotes neither a path nor a file.
 */
import * as Effect from "effect/Effect"
import { X509Certificate } from "node:crypto"
import { isIP } from "node:net"
import { createSecureContext, type SecureContext } from "node:tls"
import { type Fault, fault } from "./ConfigError.ts"
import { isJsonObject, type RawConfig, sha256Hex } from "./json.ts"
import { readRegularFile } from "./regularFile.ts"
import { mostUpstreams } from "./schema.ts"

/** The group as configured. `ca`, `cert` and `key` are PEM texts or paths of files with one. */
export interface TlsSettings {
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
  readonly server_name?: string | undefined
}

/** The TLS of an upstream, read and checked. */
export interface UpstreamTls {
  /** Roots, certificate and key; never printed. */
  readonly context: SecureContext
  readonly serverName: string | undefined
  /** Equal for equal contents. */
  readonly id: string
}

/** The most bytes of a file. */
const longestFile = 1024 * 1024

/** Files that are read concurrently. */
const readsAtOnce = 4

/** The PEM texts of files, by the paths as they are written, without those that have none. */
export type PemFiles = ReadonlyMap<string, string>

const noFiles: PemFiles = new Map()

const isPem = (text: string): boolean => text.includes("-----BEGIN ")

const fileFields = ["ca", "cert", "key"] as const

/** The paths in the `tls` of a configuration's upstreams: at most three of each that may be configured. */
const pathsIn = (raw: RawConfig): ReadonlySet<string> => {
  const named = isJsonObject(raw["upstreams"]) ? Object.values(raw["upstreams"]).slice(0, mostUpstreams) : []
  const paths = new Set<string>()
  for (const entry of [raw["upstream"], ...named]) {
    const tls = isJsonObject(entry) ? entry["tls"] : undefined
    for (const field of fileFields) {
      const text = isJsonObject(tls) ? tls[field] : undefined
      if (typeof text === "string" && text.trim() !== "" && !isPem(text)) paths.add(text.trim())
    }
  }
  return paths
}

/** Reads the files that the `tls` of a configuration's upstreams names. Succeeds immediately if it names none. */
export const readPemFiles = (raw: RawConfig): Effect.Effect<PemFiles> => {
  const paths = pathsIn(raw)
  if (paths.size === 0) return Effect.succeed(noFiles)
  const read = (path: string) =>
    readRegularFile(path, longestFile).pipe(
      Effect.map((bytes): ReadonlyArray<readonly [string, string]> => {
        const text = bytes.toString("utf8").trim()
        return isPem(text) ? [[path, text]] : []
      }),
      Effect.orElseSucceed(() => [])
    )
  return Effect.map(
    Effect.forEach(paths, read, { concurrency: readsAtOnce }),
    (files): PemFiles => new Map(files.flat())
  )
}

const certificate = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/** True if the text has certificates and each of them can be read. */
const hasCertificates = (pem: string): boolean => {
  const found = pem.match(certificate) ?? []
  try {
    return found.length > 0 && found.every((each) => new X509Certificate(each).raw.length > 0)
  } catch {
    return false
  }
}

const isHostName = (text: string): boolean =>
  isIP(text) === 0 && /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]*)(?:\.[a-z0-9_-]+)*$/i.test(text)

/** Reads the TLS of an upstream at a place of the file, whose files `files` has; `undefined` without settings or with a fault. */
export const readTls = (
  settings: TlsSettings | undefined,
  place: string,
  faults: Array<Fault>,
  files: PemFiles = noFiles
): UpstreamTls | undefined => {
  const { ca, cert, key, server_name } = settings ?? {}
  const written = { ca: ca?.trim(), cert: cert?.trim(), key: key?.trim() }
  const serverName = server_name?.trim() || undefined
  const before = faults.length
  const wrong = (field: string, rule: string) => {
    faults.push(fault(`${place}.${field}`, rule))
    return undefined
  }
  const read = (
    name: typeof fileFields[number],
    isValid: (pem: string) => boolean,
    what: string
  ): string | undefined => {
    const text = written[name]
    if (text === undefined || text === "") return undefined
    const pem = isPem(text) ? text : files.get(text)
    return pem !== undefined && isValid(pem)
      ? pem
      : wrong(name, `must be ${what} in PEM, or a file with one that can be read`)
  }
  const pems = {
    ca: read("ca", hasCertificates, "a certificate"),
    cert: read("cert", hasCertificates, "a certificate"),
    key: read("key", (pem) => pem.includes("PRIVATE KEY-----"), "a private key")
  }
  if (!written.cert !== !written.key) {
    wrong(written.key ? "cert" : "key", "is required: a client's certificate needs both cert and key")
  }
  if (serverName !== undefined && !isHostName(serverName)) wrong("server_name", "must be the name of a host")
  if (faults.length > before) return undefined
  const contents = JSON.stringify([pems.ca, pems.cert, pems.key, serverName])
  if (contents === "[null,null,null,null]") return undefined
  try {
    return { context: createSecureContext(pems), serverName, id: sha256Hex(contents) }
  } catch {
    return wrong("key", "must be the private key of cert, without a passphrase")
  }
}
