// `main.ts FOLDER FINGERPRINT`: bundles the service for scripts/start into FOLDER/FINGERPRINT.js, and removes all older
// bundles but one. Exit code 1: the sources have errors. 3: this machine cannot build any sources.
import { mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import path from "node:path"

const cannotBuild = 3
const kept = 2

const message = (error: unknown): string => error instanceof Error ? error.message : String(error)

/** Ends the process unless `action` succeeds. */
const orEnd = async <A>(code: number, action: () => A | Promise<A>): Promise<A> => {
  try {
    return await action()
  } catch (error) {
    console.error(message(error))
    return process.exit(code)
  }
}

const [folder = "", fingerprint = ""] = process.argv.slice(2)

const { buildService } = await orEnd(cannotBuild, () => import("./service.ts"))
const { packAssets } = await import("./assets.ts")

/** The commit that has these sources; `null` where git does not know them. */
const commitOfSources = async (): Promise<{ readonly commit: string | null; readonly date: string | null }> => {
  const { commitName, isoDate, readFacts } = await import("../release/facts.ts")
  try {
    const facts = readFacts("src", "scripts", "package.json", "package-lock.json", "tsconfig.json")
    return { commit: commitName(facts), date: isoDate(facts) }
  } catch {
    return { commit: null, date: null }
  }
}
await orEnd(cannotBuild, () => mkdirSync(folder, { recursive: true }))

const files = [`${fingerprint}.assets`, `${fingerprint}.js`] as const
const service = await orEnd(
  1,
  async () => buildService("main.ts", { form: "bundle", ...await commitOfSources(), assets: `./${files[0]}` }, "quick")
)

// The code is written last, so that its presence means that the bundle is complete.
await orEnd(cannotBuild, () => {
  for (const [file, content] of [[files[0], packAssets(service.assets)], [files[1], service.code]] as const) {
    writeFileSync(path.join(folder, `${file}.new`), content)
    renameSync(path.join(folder, `${file}.new`), path.join(folder, file))
  }
  // Saves Node the detection of the module type.
  writeFileSync(path.join(folder, "package.json"), "{\"type\":\"module\"}\n")
  const others = readdirSync(folder).filter((file) => file.endsWith(".js") && file !== files[1])
    .map((file) => ({ file, time: statSync(path.join(folder, file)).mtimeMs }))
    .sort((a, b) => b.time - a.time)
  for (const { file } of others.slice(kept - 1)) {
    rmSync(path.join(folder, file))
    rmSync(path.join(folder, file.replace(/js$/, "assets")), { force: true })
  }
})
