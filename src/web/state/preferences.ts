/**
 * Language, theme and time zone, as the person at the page chose them. The browser stores nothing else.
 */
import * as Atom from "effect/reactivity/Atom"
import { en, type Texts } from "../texts/en.ts"
import type { AllTexts } from "../texts/later.ts"
import { registry, useAtom } from "./registry.ts"

export type Language = "en" | "zh"
export const languages = [["en", "English"], ["zh", "中文"]] as const
export const themes = ["system", "light", "dark"] as const
export type Theme = (typeof themes)[number]

const stored = (name: string): string | null => {
  try {
    return localStorage.getItem(`model-gateway.${name}`)
  } catch {
    return null
  }
}

const store = (name: string, value: string): void => {
  try {
    localStorage.setItem(`model-gateway.${name}`, value)
  } catch {
    // The browser refuses storage: the choice lasts until the page is left.
  }
}

export const zones = ["local", "utc"] as const
/** The time zone of every time that the console shows: the browser's, or UTC. */
export type Zone = (typeof zones)[number]

export const zoneAtom = Atom.keepAlive(Atom.make<Zone>("local"))
export const languageAtom = Atom.keepAlive(Atom.make<Language>("en"))
const textsAtom = Atom.keepAlive(Atom.make<Texts | AllTexts>(en))
export const themeAtom = Atom.keepAlive(Atom.make<Theme>("system"))

/** The texts of the first load in the chosen language; `state/texts.ts` has all of them. */
export const useTexts = (): Texts | AllTexts => useAtom(textsAtom)

/** The texts of the chosen language, outside a view. */
export const texts = (): Texts => registry.get(textsAtom)

/** Changes the language. Texts of other languages than English are loaded first. */
export const chooseLanguage = async (language: Language): Promise<void> => {
  const next = language === "en" ? en : (await import("../texts/zh.ts")).zh
  registry.set(textsAtom, next)
  registry.set(languageAtom, language)
  document.documentElement.lang = language
  store("language", language)
}

export const chooseTheme = (theme: Theme): void => {
  registry.set(themeAtom, theme)
  document.documentElement.dataset["theme"] = theme
  store("theme", theme)
}

export const chooseZone = (zone: Zone): void => {
  registry.set(zoneAtom, zone)
  store("zone", zone)
}

/**
 * Gives a browser whose language is no language tag that of the page: Chromium has `en-US@posix` on machines without a locale, with which
 * the library of the charts does not load.
 */
const mendLanguage = (): void => {
  try {
    Intl.getCanonicalLocales(navigator.language)
  } catch {
    Object.defineProperty(navigator, "language", { value: document.documentElement.lang, configurable: true })
  }
}

/** Restores the stored choices. Without a stored language, takes the browser's. */
export const restorePreferences = async (): Promise<void> => {
  mendLanguage()
  const theme = themes.find((each) => each === stored("theme"))
  if (theme !== undefined) chooseTheme(theme)
  const zone = zones.find((each) => each === stored("zone"))
  if (zone !== undefined) chooseZone(zone)
  const wanted = stored("language") ?? navigator.language.slice(0, 2)
  if (wanted === "zh") await chooseLanguage(wanted)
}
