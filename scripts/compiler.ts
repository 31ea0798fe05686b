// The compiler of the checks and of the package.
import path from "node:path"

/** A path in the folder of the installed packages. */
export const inModules = (name: string): string => path.join(import.meta.dirname, "../node_modules", name)

/**
 * The command that compiles a project, of changed files alone. Effect's build of the compiler reports the compiler's errors and Effect's
 * diagnostics in one pass. It has its own build info file, because the plain compiler would write one without those diagnostics.
 */
export const effectCompiler = (
  project: string,
  buildInfo: string,
  ...options: ReadonlyArray<string>
): readonly [string, ...ReadonlyArray<string>] => [
  inModules(`@effect/tsgo-${process.platform}-${process.arch}/lib/tsc`),
  "--project",
  project,
  "--incremental",
  "--tsBuildInfoFile",
  buildInfo,
  ...options
]
