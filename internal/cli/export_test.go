package cli

// MainOn is Main on a machine whose file system is a copy below root.
func MainOn(root string, args []string) int {
	env := System()
	env.Root = root
	return execute(env, args)
}
