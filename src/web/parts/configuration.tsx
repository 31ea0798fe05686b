/**
 * Whether the configuration can be changed here. The console provides it, so that parts do not ask the gateway.
 */
import { createContext, type JSX } from "preact"
import { useContext } from "preact/hooks"
import { PressButton } from "./Form.tsx"

/** What parts know of the configuration. */
export interface ConfigurationState {
  /** Why it cannot be changed here; `undefined` where it can. Only what changes it asks. */
  readonly useLock: (asks: boolean) => string | undefined
  /** Warns when changes are refused, or lost at the end of the process. */
  readonly Notice: () => JSX.Element | null
}

export const ConfigurationContext = createContext<ConfigurationState>({ useLock: () => undefined, Notice: () => null })

/** Why the configuration cannot be changed here; `undefined` where it can. Only what changes it asks. */
export const useLock = (asks = true): string | undefined => useContext(ConfigurationContext).useLock(asks)

/** Warns when changes are refused, or lost at the end of the process. */
export const DurabilityNotice = () => {
  const { Notice } = useContext(ConfigurationContext)
  return <Notice />
}

/** A button that changes the configuration: where that is locked, it does nothing and says why. */
export const ChangeButton = (button: Omit<Parameters<typeof PressButton>[0], "disabled">) => (
  <PressButton {...button} disabled={useLock()} />
)
