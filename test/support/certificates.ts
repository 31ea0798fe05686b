/** Certificates for tests of TLS, made with openssl. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"

/** A certificate and its key, in PEM. */
export interface Certificate {
  readonly cert: string
  readonly key: string
}

/** An authority, and certificates that it has signed. */
export interface Authority extends Certificate {
  /** Signs a certificate for names such as `DNS:upstream.test` or `IP:127.0.0.1`. */
  readonly sign: (...names: ReadonlyArray<string>) => Certificate
}

const elliptic = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]

const make = (folder: string, kind: ReadonlyArray<string>, extra: ReadonlyArray<string>): Certificate => {
  const [cert, key] = [path.join(folder, "cert.pem"), path.join(folder, "key.pem")]
  const made = spawnSync("openssl", [
    "req",
    "-x509",
    ...kind,
    "-nodes",
    "-days",
    "2",
    ...extra,
    "-keyout",
    key,
    "-out",
    cert
  ])
  if (made.status !== 0) throw new Error("openssl is not installed, and the tests of TLS make certificates with it")
  return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") }
}

const openssl = (folder: string, ...extra: ReadonlyArray<string>): Certificate => make(folder, elliptic, extra)

/** Makes a certificate of an RSA key, signed by itself. */
export const rsaCertificate = (): Certificate => {
  const folder = mkdtempSync(path.join(tmpdir(), "certificates-"))
  try {
    return make(folder, ["-newkey", "rsa:2048"], ["-subj", "/CN=client"])
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const leaf = "basicConstraints=critical,CA:FALSE"
const namesOf = (names: ReadonlyArray<string>): string => `subjectAltName=${names.join(",")}`

/** Makes an authority that nothing trusts by itself. */
export const makeAuthority = (): Authority => {
  const folder = mkdtempSync(path.join(tmpdir(), "certificates-"))
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }))
  const own = openssl(folder, "-subj", "/CN=authority")
  const [ca, caKey] = [path.join(folder, "ca.pem"), path.join(folder, "ca.key")]
  writeFileSync(ca, own.cert)
  writeFileSync(caKey, own.key)
  return {
    ...own,
    sign: (...names) =>
      openssl(folder, "-CA", ca, "-CAkey", caKey, "-subj", "/CN=signed", "-addext", leaf, "-addext", namesOf(names))
  }
}
