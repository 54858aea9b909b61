"""What is run and measured for the paper's figures and theorems; the files beside this folder show and judge the numbers.

A change in here, or in the package itself, makes kept numbers worthless; a change in what shows them does not.
"""
