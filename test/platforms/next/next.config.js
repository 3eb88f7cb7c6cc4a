export default {
  // Not the folder of the next package-lock.json further out.
  turbopack: { root: import.meta.dirname },
};
